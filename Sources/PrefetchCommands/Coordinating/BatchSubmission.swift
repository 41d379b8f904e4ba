internal import Glibc
internal import Prefetch
internal import Redis
internal import WebImage

/// Puts a list into a queue as a batch, or finds the batch it is already.
struct BatchSubmission: Sendable {
    let queue: PrefetchQueue
    let list: URLList
    let settings: BatchSettings
    /// The folder in which hits are looked for while the list is queued, where that is asked.
    var cache: String?
    /// Where the list comes through a pipe, whose lines become it.
    var pipe: ListPipe?

    /// A new batch of the list; tells which batch it has ended where it takes a slot.
    /// - Throws: `configuration` where `--name` names a batch that exists.
    func open() async throws(PrefetchError) -> String {
        var batch = NewBatch(list: list)
        batch.isOpen = pipe != nil
        batch.settings = settings
        let opened = try await batch.open(in: queue)
        if let slot = batch.takenSlot, let replaced = opened.replaced {
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
            queue: queue, entries: pipe.map { BatchEntries($0) } ?? BatchEntries(list), of: list.path, batch: id,
            window: settings.window, jobSize: settings.jobSize, hits: try hits()
        ).feed(waiting: waiting)
    }

    private func hits() throws(PrefetchError) -> CacheHits? {
        // Whether lines of a pipe ask for that is not known yet.
        guard Self.asksForHits(list, settings.options) || (pipe != nil && cache != nil) else { return nil }
        guard let cache else {
            throw PrefetchError(
                .configuration, "queryDiskSync reads the cache while the list is queued, and none was named",
                hint: "name the folder the workers have: --cache DIR")
        }
        return CacheHits(try CacheOpening.forWriting(cache), options: settings.options)
    }

    /// Whether the batch or one of its lines asks for hits to be ended at once.
    static func asksForHits(_ list: URLList, _ options: BatchOptions) -> Bool {
        options.options.union(list.lineOptions).contains(.queryDiskSync)
    }

    /// Warns about combinations of options before the batch is made.
    static func warn(of lineOptions: WebImageOptions, _ options: BatchOptions) {
        let options = options.options.union(lineOptions)
        if options.contains(.allowInvalidSSLCertificates) {
            Console.note(
                "warning: certificates are not checked: anybody on the way can read and change what is fetched")
        }
    }
}

extension URLList {
    /// Rejects an unusable list before its head is copied.
    static func check(
        _ path: String, _ table: TableOptions, most: Int
    ) throws(PrefetchError) {
        try GivenList.requireURLs(URLList(path: path, format: table.inputFormat, most: most).total, of: path)
    }
}
