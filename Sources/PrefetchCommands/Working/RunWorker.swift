internal import FoundationEssentials
internal import Prefetch
internal import Redis

/// A worker of a run: its command line, which anybody on the machine can read, and type, and a ``Document``, which stays in memory.
///
/// The command line is read without the parser of options, which would take a third of a worker's start.
struct RunWorker {
    struct Document: Sendable, Equatable {
        var fetch: FetchSettings
        /// Whether it prints its final counts.
        var tellsResult = true

        init(_ fetch: FetchSettings) { self.fetch = fetch }

        /// What the parent process left.
        /// - Throws: `configuration` where it left nothing.
        init(inherited descriptor: Int32) throws(PrefetchError) {
            guard let bytes = InheritedDocument.take(descriptor) else {
                throw PrefetchError(
                    .configuration, "descriptor \(descriptor) has no settings for a worker",
                    hint: "\(WorkerSupervisor.inheritedOption) is for prefetch-coord run; give the options themselves")
            }
            let words = BatchOptions.words(in: String(decoding: bytes, as: UTF8.self))
            fetch = FetchSettings(words: words)
            tellsResult = words[Self.result] != nil
        }

        private static let result = "#tells_result"

        /// The settings as options have them, which nobody sees here.
        var encoded: [UInt8] {
            Array(BatchOptions.text(of: fetch.words.merging(tellsResult ? [Self.result: []] : [:]) { $1 }).utf8)
        }
    }

    var redis = "", cache = "", queue = "default"
    var showsSecrets = false
    /// Of the ``InheritedDocument``; the supervisor adds it.
    private(set) var inherited: Int32?
    /// Of the ``DecodeNotes``, and its number among the workers of its run; the supervisor adds them.
    private(set) var notes: (descriptor: Int32, worker: Int)?

    init(redis: String, cache: String) { (self.redis, self.cache) = (redis, cache) }

    /// * `words`: a command line; nil unless a run wrote it.
    init?(_ words: [String]) {
        var words = words[...]
        while let word = words.popFirst() {
            switch word {
            case "--quiet": break
            case "--show-secrets": showsSecrets = true
            default:
                guard let value = words.popFirst() else { return nil }
                switch word {
                case "--redis": redis = value
                case "--cache": cache = value
                case "--queue": queue = value
                case WorkerSupervisor.inheritedOption:
                    let numbers = value.utf8.split(separator: UInt8(ascii: ",")).map { Int32(String($0) ?? "") }
                    inherited = numbers.first ?? nil
                    if numbers.count == 3, let descriptor = numbers[1], let worker = numbers[2] {
                        notes = (descriptor, Int(worker))
                    }
                default: return nil
                }
            }
        }
        guard inherited != nil else { return nil }
    }

    /// The command line, but for the document.
    var words: [String] {
        var words = ["--redis", redis, "--cache", cache, "--quiet"]
        if queue != "default" { words += ["--queue", queue] }
        if showsSecrets { words.append("--show-secrets") }
        return words
    }

    /// - Throws: `configuration` where there is no document.
    func run() async throws {
        let document = try Document(inherited: inherited ?? -1)
        if showsSecrets { ShownURL.showSecrets() }
        let configuration: RedisConfiguration
        do throws(RedisError) { configuration = try RedisConfiguration(url: redis) } catch {
            throw PrefetchError(error)
        }
        let queue = queue
        var worker = WorkerProcess(cache: cache, queue: queue) { () async throws(PrefetchError) in
            try await Session.open(configuration, queue: queue, waits: true)
        }
        worker.fetch = document.fetch
        worker.isQuiet = true
        worker.tellsResult = document.tellsResult
        worker.notes = notes.flatMap { DecodeNotes.Writer(inherited: $0.descriptor, worker: $0.worker) }
        try await worker.run()
    }
}
