internal import Glibc
internal import Prefetch
internal import Redis
internal import WebImage

/// Puts a list into a queue as a batch, or finds the batch it is already.
struct BatchSubmission: Sendable {
    let queue: PrefetchQueue
    let list: ListStream
    let settings: BatchSettings
    /// The folder in which hits are looked for while the list is queued, where that is asked.
    var cache: NamedCache?
    /// Whether there is more of the list than when its batch was made or sealed.
    var hasGrown = false

    /// A new batch of the list; tells which batch it has ended where it takes a slot.
    /// - Throws: `configuration` where `--name` names a batch that exists.
    func open() async throws(PrefetchError) -> String {
        var batch = NewBatch(list: list.list)
        batch.settings = settings
        let opened = try await batch.open(in: queue)
        list.leaveToBatch()
        if let slot = batch.takenSlot, let replaced = opened.replaced {
            Console.note(
                "cancelled \(TerminalText.escaped(replaced)), which had the slot \(TerminalText.escaped(slot))")
        }
        return opened.id
    }

    /// Feeds a batch until it is sealed.
    /// - Throws: as ``ListFeeder``; `stopped` if the batch ended before what its list has grown by was queued.
    func feed(
        _ id: String, waiting: @Sendable (ListFeeder.Wait) -> Void = { _ in }
    ) async throws(PrefetchError) -> ListFeeder.End {
        let end: ListFeeder.End
        do throws(PrefetchError) {
            end = try await ListFeeder(
                queue: queue, entries: BatchEntries(list), of: list.name, batch: id, window: settings.window,
                jobSize: settings.jobSize, hasGrown: hasGrown, hits: try hits()
            ).feed(waiting: waiting)
        } catch {
            guard error.kind == .unreadableList else { throw error }
            var error = error
            error.hint += "; what comes before it is queued as \(id), and the same command continues that"
            throw error
        }
        if hasGrown, end == .closed(BatchStatus.State.done.rawValue) {
            throw PrefetchError(
                .stopped, "\(id) was done before what \(list.name) has grown by was queued",
                hint: "run the same command again")
        }
        if !list.isWhole {
            GivenList.judge(list.reading.parts)
            Self.warn(of: list.reading.lineOptions.subtracting(settings.options.options), BatchOptions())
        }
        return end
    }

    private func hits() throws(PrefetchError) -> CacheHits? {
        // Whether lines that were not read yet ask for that is not known.
        guard Self.asksForHits(list, settings.options) || (!list.isWhole && cache != nil) else { return nil }
        guard let cache else {
            throw PrefetchError(
                .configuration, "queryDiskSync reads the cache while the list is queued, and none was named",
                hint: "name the folder the workers have: --cache DIR")
        }
        return CacheHits(try cache.forWriting(), options: settings.options)
    }

    /// Whether the batch or one of its lines asks for hits to be ended at once.
    static func asksForHits(_ list: ListStream, _ options: BatchOptions) -> Bool {
        options.options.union(list.reading.lineOptions).contains(.queryDiskSync)
    }

    /// Warns about combinations of options.
    static func warn(of lineOptions: WebImageOptions, _ options: BatchOptions) {
        let options = options.options.union(lineOptions)
        if options.contains(.allowInvalidSSLCertificates) {
            Console.note(
                "warning: certificates are not checked: anybody on the way can read and change what is fetched")
        }
    }
}
