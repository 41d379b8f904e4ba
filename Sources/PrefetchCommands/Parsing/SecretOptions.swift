internal import ArgumentParser

/// Whether secrets in URLs are shown. ``CommandRunner`` acts on it before the command runs.
struct SecretOptions: ParsableArguments {
    @Flag(help: "Print passwords and signatures of URLs instead of ***.")
    var showSecrets = false
}
