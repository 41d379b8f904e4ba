internal import Threading
internal import WebImage

/// The one door between URLs and what is printed or written for people: masked as ``URLRedaction`` decides, unless `--show-secrets` was given.
enum ShownURL {
    private static let showsSecrets = Locked(false)

    /// From now on everything is shown as it is.
    static func showSecrets() { showsSecrets.withLock { $0 = true } }

    /// A URL.
    static func url(_ url: String) -> String { showsSecrets.withLock { $0 } ? url : URLRedaction.url(url) }

    /// What to say where a list was written that other commands read; nil where nothing was masked.
    static func note(ofMasked count: Int) -> String? {
        guard count > 0 else { return nil }
        return "note: \(Wording.count(count, "URL")) \(count == 1 ? "has" : "have") secrets, which are ***; "
            + "a list to run or to import has to be written with --show-secrets"
    }

    /// A sentence that may name URLs.
    static func text(_ text: String) -> String { showsSecrets.withLock { $0 } ? text : URLRedaction.text(text) }
}

extension JSONText {
    /// A URL, masked.
    static func url(_ url: String) -> JSONText { .string(ShownURL.url(url)) }

    /// A sentence that may name URLs, masked.
    static func sentence(_ text: String) -> JSONText { .string(ShownURL.text(text)) }
}
