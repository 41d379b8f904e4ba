internal import FoundationEssentials
internal import WebImage

/// The address of a list: a page of the web, or a file of a dataset of the Hugging Face hub, `hf://datasets/OWNER/NAME[@REVISION]/PATH` as
/// its own tools write it. `@~parquet` is the branch with the hub's own conversion.
enum ListAddress: Equatable {
    case web(String)
    case hub(HubPath)

    /// A place in a dataset.
    struct HubPath: Equatable {
        /// `OWNER/NAME`.
        let dataset: String
        let revision: String
        /// Without a slash at its ends; empty: the folder with everything.
        var path: String
        /// Whether it was written with a slash at its end.
        var endsWithSlash = false

        /// The address again.
        var text: String {
            let version = revision == "main" ? "" : "@\(revision)"
            return "hf://datasets/\(dataset)\(version)" + (path.isEmpty ? "" : "/\(path)")
        }

        /// The names in its path: the last one may be a pattern.
        fileprivate var names: [Substring] { path.split(separator: "/") }
        var isPattern: Bool { names.last?.contains { "*?[".contains($0) } ?? false }

        /// Whether it is a file by its name.
        var isFile: Bool { !endsWithSlash && names.last?.dropFirst().contains(".") ?? false }

        /// The folder around it.
        var parent: HubPath {
            var parent = self
            parent.path = names.dropLast().joined(separator: "/")
            return parent
        }

        /// Where the hub has the file.
        func file(at hub: String) -> String { "\(hub)/datasets/\(dataset)/resolve/\(encodedRevision)\(encodedPath)" }

        /// Where it says what there is in the folder.
        func tree(at hub: String) -> String { "\(hub)/api/datasets/\(dataset)/tree/\(encodedRevision)\(encodedPath)" }

        private var encodedRevision: String {
            // As the hub's tools write it, a slash in a revision is encoded already.
            ListAddress.encoded(
                revision == "~parquet" ? "refs/convert/parquet" : revision.replacing("%2F", with: "/"))
        }
        private var encodedPath: String { names.map { "/" + ListAddress.encoded(String($0)) }.joined() }
    }

    /// Whether a word is the address of a list: http, https or hf.
    static func isAddress(_ word: String) -> Bool {
        ["http://", "https://", "hf://"].contains { word.prefix($0.count).asciiLowercased == $0 }
    }

    /// - Throws: `configuration` for a path of the hub that is none of a dataset.
    init(_ word: String) throws(PrefetchError) {
        guard word.prefix(5).asciiLowercased == "hf://" else {
            self = .web(word)
            return
        }
        let names = word.dropFirst(5).split(separator: "/").map(String.init)
        guard names.count >= 3, names[0] == "datasets", !names.contains("..") else {
            throw PrefetchError(
                .configuration, "\(PathText.shown(word)) is no path in a dataset of the hub",
                hint: "write hf://datasets/OWNER/NAME/PATH, with @REVISION behind NAME if it is not main")
        }
        let name = names[2].split(separator: "@", maxSplits: 1).map(String.init)
        self = .hub(
            HubPath(
                dataset: "\(names[1])/\(name[0])", revision: name.count > 1 ? name[1] : "main",
                path: names.dropFirst(3).joined(separator: "/"), endsWithSlash: word.hasSuffix("/")))
    }

    /// A segment of a path, percent-encoded (RFC 3986, 2.3).
    private static func encoded(_ name: String) -> String {
        name.utf8.map { byte in
            let isPlain =
                (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                || "-._~=".utf8.contains(byte)
            return isPlain
                ? String(UnicodeScalar(byte))
                : "%" + String(byte >> 4, radix: 16, uppercase: true) + String(byte & 15, radix: 16, uppercase: true)
        }.joined()
    }
}
