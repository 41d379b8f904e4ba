/// A reader of strangers' bytes that is written in Swift, and what has to hold of it beside that it does not trap.
enum FuzzTarget: String, CaseIterable {
    /// Lists of all formats, and the jobs that are made of them.
    case lists
    /// Jobs as another writer of the queue may push them.
    case job
    /// Records, validators and the other attributes of files in a cache.
    case record
    /// Values of response headers.
    case headers
    /// URLs, redirects, addresses, and what is shown of them.
    case urls
    /// Answers of a resolver.
    case names
    /// Replies of Redis, and the texts in them.
    case replies
    case robots
    /// A pattern, its replacement, and a URL.
    case pattern
    /// Codings of a body: gzip, frames of an upload, several of them.
    case codings
    /// First bytes of files, and WebP.
    case images

    /// What two readers, or a reader and a writer, do not agree on.
    struct Contradiction: Error, CustomStringConvertible {
        let description: String
    }

    static func claim(_ holds: Bool, _ text: @autoclosure () -> String) throws {
        if !holds { throw Contradiction(description: text()) }
    }

    /// Reads one input. Errors that a reader may have are none here.
    /// - Throws: `Contradiction`.
    func read(_ bytes: [UInt8]) throws {
        switch self {
        case .lists: try Self.readList(bytes)
        case .job: try Self.readJob(bytes)
        case .record: try Self.readRecord(bytes)
        case .headers: try Self.readHeaders(bytes)
        case .urls: try Self.readURL(bytes)
        case .names: try Self.readNames(bytes)
        case .replies: try Self.readReply(bytes)
        case .robots: try Self.readRobots(bytes)
        case .pattern: try Self.readPattern(bytes)
        case .codings: try Self.readCodings(bytes)
        case .images: try Self.readImage(bytes)
        }
    }

    /// The lines of an input, as texts.
    static func lines(_ bytes: some Sequence<UInt8>) -> [String] {
        Array(bytes).split(separator: 0x0A, omittingEmptySubsequences: false).map {
            String(decoding: $0, as: UTF8.self)
        }
    }
}
