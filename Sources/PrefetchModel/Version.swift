/// The version of the package, sent in `User-Agent` and printed by `--version`.
package let PrefetchVersion = "0.1.0"

/// The User-Agent: `prefetch/0.1.0`, or with a contact `prefetch/0.1.0 (+https://example.org/bot)`, as crawlers do.
package func userAgent(contact: String?) -> String {
    "prefetch/\(PrefetchVersion)" + (contact.map { " (+\($0))" } ?? "")
}
