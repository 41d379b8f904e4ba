/// The version of the package, as it is sent in `User-Agent` and printed by `--version`.
package let PrefetchVersion = "0.1.0"

/// Where the project is found, as it is sent in `User-Agent`.
package let PrefetchProjectURL = "https://prefetch.example"
