internal import FoundationEssentials
internal import Glibc
internal import Prefetch
internal import Redis
internal import WebImage

/// Puts a list into a queue as a batch, or finds the batch it is already.
struct BatchSubmission: Sendable {
    let queue: PrefetchQueue
    let list: URLList
    let arguments: BatchArguments
    /// The folder in which hits are looked for while the list is queued, where that is asked.
    var cache: String?

    /// A new batch of the list; tells which batch it has ended where it takes a slot.
    /// - Throws: `configuration` where `--name` names a batch that exists.
    func open(slot: String? = nil) async throws(PrefetchError) -> String {
        try await Self.open(Self.batch(list, arguments), slot: slot, in: queue)
    }

    /// What is asked for a list, or for a batch that will have some.
    static func batch(_ list: URLList?, _ arguments: BatchArguments) -> NewBatch {
        var batch = NewBatch(list: list)
        batch.options = arguments.options
        batch.order = arguments.order
        batch.priority = arguments.priority
        batch.keep = Int(arguments.keep.seconds)
        batch.keepDetails = arguments.keepDetails
        batch.name = arguments.name
        batch.limit = arguments.limit
        batch.finishAt = arguments.finishAt
        return batch
    }

    /// Makes the batch; tells which one it has ended where it takes a slot.
    static func open(_ batch: NewBatch, slot: String?, in queue: PrefetchQueue) async throws(PrefetchError) -> String {
        var batch = batch
        batch.slot = slot
        let opened = try await batch.open(in: queue)
        if let slot, let replaced = opened.replaced {
            Console.note(
                "cancelled \(TerminalText.escaped(replaced)), which had the slot \(TerminalText.escaped(slot))")
        }
        return opened.id
    }

    /// Feeds a batch until it is sealed.
    func feed(
        _ id: String, waiting: @Sendable (ListFeeder.Wait) -> Void = { _ in }
    ) async throws(PrefetchError) -> ListFeeder.End {
        try await ListFeeder(
            queue: queue, list: list, batch: id, window: arguments.window, jobSize: arguments.jobSize, hits: try hits()
        ).feed(waiting: waiting)
    }

    private func hits() throws(PrefetchError) -> CacheHits? {
        guard Self.asksForHits(list, arguments) else { return nil }
        guard let cache else {
            throw PrefetchError(
                .configuration, "queryDiskSync looks into the cache while the list is queued, and none was named",
                hint: "name the folder the workers have: --cache DIR")
        }
        return CacheHits(try RunCommand.openCache(cache), options: arguments.options)
    }

    /// Whether the batch or one of its lines asks for hits to be ended at once.
    static func asksForHits(_ list: URLList, _ arguments: BatchArguments) -> Bool {
        arguments.options.options.union(list.lineOptions).contains(.queryDiskSync)
    }

    /// What a person should hear of a batch's options before it is made.
    static func warn(of list: URLList?, _ arguments: BatchArguments) {
        let options = arguments.options.options.union(list?.lineOptions ?? [])
        if options.contains(.allowInvalidSSLCertificates) {
            Console.note(
                "warning: certificates are not checked: anybody on the way can read and change what is fetched")
        }
    }

    /// Where lists are kept that are no files of the person's own: in the cache folder, or where there is none in TMPDIR.
    private static func listFolder(_ folder: String?) throws(PrefetchError) -> String {
        let directory =
            folder.map { $0 + "/.prefetch/lists" } ?? (ProcessInfo.processInfo.environment["TMPDIR"] ?? "/tmp")
        if folder != nil {
            guard
                (try? FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)) != nil
            else {
                throw PrefetchError(
                    .cacheUnavailable, "cannot make \(directory): \(String(cString: strerror(errno)))",
                    hint: "choose a folder that this user may write: --cache DIR")
            }
        }
        return directory
    }

    /// Standard input as a file, since a list is read twice: in the cache folder, or where there is none in TMPDIR.
    static func spool(into folder: String?) throws(PrefetchError) -> String {
        let directory = try listFolder(folder)
        let path = "\(directory)/stdin-\(getpid())-\(UInt32.random(in: 0...UInt32.max)).txt"
        let file = Glibc.open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else {
            throw PrefetchError(.inputOutput, "cannot write \(path): \(String(cString: strerror(errno)))")
        }
        defer { close(file) }
        var buffer = [UInt8](repeating: 0, count: 1 << 18)
        while true {
            let count = read(STDIN_FILENO, &buffer, buffer.count)
            if count == 0 { return path }
            if count < 0 && errno == EINTR { continue }
            guard count > 0, write(file, buffer, count) == count else {
                let reason = String(cString: strerror(errno))
                unlink(path)
                throw PrefetchError(
                    .inputOutput, "cannot copy the list from standard input: \(reason)",
                    hint: "make room in \(directory)")
            }
        }
    }

    /// The list a command was given: a file, or `-`.
    static func list(
        _ path: String, cache: String?, format: ListFormat, table: TableOptions
    ) throws(PrefetchError) -> URLList {
        if path == "-" {
            if isatty(STDIN_FILENO) == 1 {
                throw PrefetchError(
                    .unreadableList, "standard input is a terminal", hint: "pipe a list into it: cat urls.txt | …")
            }
            let file = try spool(into: cache)
            let laidOut: URLList?
            do throws(PrefetchError) {
                laidOut = try layOut(file, name: "stdin", isSpooled: true, cache: cache, format, table)
            } catch {
                unlink(file)
                throw error
            }
            guard let list = laidOut else { return try URLList(path: file, format: format) }
            unlink(file)
            return list
        }
        if let list = try layOut(path, name: path, cache: cache, format, table) { return list }
        return try URLList(path: path, format: format)
    }

    /// Whether a file is no list of lines, so that one is made of it beside the images.
    static func isLaidOut(_ path: String, _ format: ListFormat, _ table: TableOptions) throws(PrefetchError) -> Bool {
        try ListImport(path: path, options: table.options(format)) != nil
    }

    /// The list that a packed list, a table or a sitemap becomes; nil where it is a list as it is.
    private static func layOut(
        _ path: String, name: String, isSpooled: Bool = false, cache: String?, _ format: ListFormat,
        _ table: TableOptions
    ) throws(PrefetchError) -> URLList? {
        guard
            let found = try ListImport(path: path, name: name, isSpooled: isSpooled, options: table.options(format))
        else { return nil }
        let stem = URLList(path: name, total: 0, hash: "").stem
        let list = try found.write(into: listFolder(cache), stem: stem)
        return try URLList(
            path: list, format: format == .jsonl || format == .plain ? format : .auto, origin: (name, found))
    }
}

extension URLList {
    /// Refuses a list that is to be a lock and is none.
    /// - Throws: `unreadableList` with the line that has no digest.
    func check(isLocked: Bool) throws(PrefetchError) {
        guard isLocked, let line = try firstUnlocked() else { return }
        throw PrefetchError(
            .unreadableList, "line \(line) of \(path) has no SHA-256, so the list is no prefetch.lock",
            hint: "write one of a batch that is done: prefetch-coord export --to lock --output prefetch.lock")
    }
}

extension Session {
    /// The name of this machine.
    static var hostName: String {
        var buffer = [CChar](repeating: 0, count: 256)
        gethostname(&buffer, buffer.count - 1)
        return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
