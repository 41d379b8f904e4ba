internal import ArgumentParser

/// Whether secrets in URLs are shown. ``CommandRunner`` acts on it before the command runs.
struct SecretOptions: ParsableArguments {
    @Flag(help: "Show passwords and signed query values of URLs, which are *** otherwise.")
    var showSecrets = false
}
