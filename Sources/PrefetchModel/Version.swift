/// The version of the package, as it is sent in `User-Agent` and printed by `--version`.
package let PrefetchVersion = "0.1.0"

/// What requests say of who asks: `prefetch/0.1.0`, and with a contact `prefetch/0.1.0 (+https://example.org/bot)`, as crawlers do.
package func userAgent(contact: String?) -> String {
    "prefetch/\(PrefetchVersion)" + (contact.map { " (+\($0))" } ?? "")
}
