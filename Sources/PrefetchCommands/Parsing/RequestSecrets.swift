internal import FoundationEssentials
internal import Prefetch
internal import WebImage

/// What is sent with requests and may be a secret, with the files of its `@FILE` forms read: once, so that a pipe will do.
///
/// A `run` hands it to its workers by an ``InheritedDocument``: anybody on the machine can read a command line.
struct RequestSecrets: Codable, Sendable, Equatable {
    /// `Name: value` each.
    var headers: [String] = []
    /// `HOST=Name: value` each.
    var headerRules: [String] = []
    /// `NAME:PASSWORD`.
    var user: String?
    var bearer: String?
    /// The hosts they are for: without them the option would be without meaning.
    var authHosts: [String] = []
    /// A URL, or `env`.
    var proxy: String?

    var isEmpty: Bool { self == RequestSecrets() }

    /// The document as bytes.
    var encoded: [UInt8] { (try? JSONEncoder().encode(self)).map { Array($0) } ?? [] }

    /// What the parent process left.
    /// - Throws: `configuration` where it left nothing.
    init(inherited descriptor: Int32) throws(PrefetchError) {
        guard let bytes = InheritedDocument.take(descriptor),
            let secrets = try? JSONDecoder().decode(RequestSecrets.self, from: Data(bytes))
        else {
            throw PrefetchError(
                .configuration, "descriptor \(descriptor) has no settings for a worker",
                hint: "--inherited-settings is for prefetch-coord run; give the options themselves")
        }
        self = secrets
    }

    init() {}

    /// Reads the lines of an option that is given several times; each is a line itself or a file of them.
    /// * `isLine`: whether a line can be used.
    /// - Throws: `configuration` with the file, and the number of the line that cannot be used, but not its text.
    static func lines(
        _ words: [String], _ option: String, wants form: String, where isLine: (String) -> Bool
    ) throws(PrefetchError) -> [String] {
        var all: [String] = []
        for word in words {
            guard word.hasPrefix("@") else {
                all.append(word)
                continue
            }
            let file = String(word.dropFirst())
            let lines = try text(of: file).split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
            for (index, line) in lines.enumerated() where !line.allSatisfy(\.isWhitespace) {
                guard isLine(String(line)) else {
                    throw PrefetchError(
                        .configuration, "line \(index + 1) of \(file) is no \(form)",
                        hint: "\(option) @FILE wants one '\(form)' a line")
                }
                all.append(String(line))
            }
        }
        return all
    }

    /// The text itself, or the first line of the file it names.
    static func line(_ text: String) throws(PrefetchError) -> String {
        guard text.hasPrefix("@") else { return text }
        return String(try Self.text(of: String(text.dropFirst())).prefix { !$0.isNewline })
    }

    /// The whole of a file.
    static func text(of file: String) throws(PrefetchError) -> String {
        guard let text = try? String(contentsOfFile: file, encoding: .utf8) else {
            throw PrefetchError(
                .configuration, "cannot read \(file)", hint: "give a file of text that this user may read")
        }
        return text
    }
}

extension FetchOptions {
    /// The secrets among these options; those of `inherited` in their place, where this process is a worker of a `run`.
    /// - Throws: `configuration` where a file cannot be read or used.
    func secrets() throws(PrefetchError) -> RequestSecrets {
        if let inheritedSettings { return try RequestSecrets(inherited: inheritedSettings) }
        var secrets = RequestSecrets()
        secrets.headers = try RequestSecrets.lines(headers, "--header", wants: "Name: value") { $0.contains(":") }
        secrets.headerRules = try RequestSecrets.lines(
            requests.headerRule, "--header-rule", wants: "HOST=Name: value"
        ) { HeaderRule($0) != nil }
        if let user = requests.user { secrets.user = try RequestSecrets.line(user) }
        secrets.authHosts = requests.authHost
        if let bearer = requests.bearer { secrets.bearer = try RequestSecrets.line(bearer) }
        if let proxy { secrets.proxy = try RequestSecrets.line(proxy) }
        return secrets
    }
}
