internal import Threading
internal import WebImage

/// A worker's state for a batch while it has jobs of it.
final class BatchContext: Sendable {
    /// The result of a transfer, for later entries of the same URL.
    struct Ending: Sendable {
        var outcome: PrefetchOutcome
        var failure: FailureDetail?
    }

    enum Role: Sendable {
        /// Fetch it, then call ``end(_:_:)``.
        case lead
        /// The first entry of this URL has ended already.
        case ended(Ending)
    }

    private struct State {
        var leading: [ByteText: [UnsafeContinuation<Ending?, Never>]] = [:]
        var failed: [ByteText: Ending] = [:]
        var refusedHosts: Set<ByteText> = []
        var jar: CookieJar? = CookieJar()
    }

    /// What `set` can change while the batch runs.
    struct Live: Sendable {
        /// How often it was changed.
        var changes: Int
        /// Nil: the default profile.
        var profile: RequestProfile?
        /// Requests per second to a host; nil: any number.
        var ratePerHost: Double?
        /// URLs before this index of the batch are not requested any more.
        var leftBefore: Int
    }

    let batch: BatchIdentity
    /// When it was created, by Redis' clock: ms since 1970.
    private let created: Int
    let options: BatchOptions
    let keepDetails: Int
    let policy: FailedURLPolicy
    let images: BatchImages
    /// Opens when the batch is cancelled or gone.
    let over = Latch()
    private let state = Locked(State())
    private let current: Locked<Live>

    init(_ status: BatchStatus, profile: RequestProfile?) {
        current = Locked(Live(status, profile))
        batch = status.identity
        created = status.created
        options = status.options
        keepDetails = status.keepDetails
        policy = options.blacklist
        images = BatchImages(options)
    }

    /// What holds for the next request.
    var live: Live { current.withLock { $0 } }

    /// Takes over later settings.
    func take(_ status: BatchStatus, profile: RequestProfile?) {
        current.withLock { live in
            if status.changes > live.changes { live = Live(status, profile) }
        }
    }

    /// The cookies of its downloads, separate from other batches. A late transfer of a batch that has ended gets its own jar.
    var cookies: CookieJar { state.withLock { $0.jar } ?? CookieJar() }

    /// Drops the cookies with its last transfer, when the batch has ended.
    func forgetCookies() { state.withLock { $0.jar = nil } }

    /// Whether this batch listed the failed URL, not an earlier one of the same id.
    func hasListed(_ entry: FailedURLEntry) -> Bool { entry.batch == batch.id && entry.last >= created }

    /// Takes the lead for a URL without a leader or a failure, the usual case.
    func tryLead(_ url: String) -> Bool {
        state.withLock { state in
            guard state.failed[url] == nil else { return false }
            // Mostly there is no leader, and one lookup is enough.
            guard let waiting = state.leading.updateValue([], forKey: url) else { return true }
            state.leading[url] = waiting
            return false
        }
    }

    /// Takes the lead for a URL, or waits for its leading entry: duplicates each count, but share one transfer.
    func begin(_ url: String) async -> Role {
        while true {
            enum Step { case lead, ended(Ending), wait }
            let step: Step = state.withLock { state in
                if let ending = state.failed[url] { return .ended(ending) }
                if state.leading[url] != nil { return .wait }
                state.leading[url] = []
                return .lead
            }
            switch step {
            case .lead: return .lead
            case .ended(let ending): return .ended(ending)
            case .wait:
                let ending: Ending? = await withUnsafeContinuation { continuation in
                    let isLate = state.withLock { state in
                        guard state.leading[url] != nil else { return true }
                        state.leading[url]?.append(continuation)
                        return false
                    }
                    if isLate { continuation.resume(returning: nil) }
                }
                if let ending { return .ended(ending) }
                // The leader left the URL open, or ended in between: try again.
                if Task.isCancelled { return .lead }
            }
        }
    }

    /// Ends the lead of a URL; nil if it was left open.
    func end(_ url: String, _ ending: Ending?) {
        let waiters = state.withLock { state in
            if let ending, ending.outcome.isSkipped {
                // Bounded: a list with more failing URLs may request some of them twice.
                if state.failed.count >= 65_536 { state.failed.removeAll(keepingCapacity: true) }
                state.failed[url] = ending
            }
            return state.leading.removeValue(forKey: url) ?? []
        }
        // A second entry of a fetched URL finds it in the cache.
        let forOthers = ending.map { $0.outcome.isSkipped ? $0 : Ending(outcome: .hit) }
        for waiter in waiters { waiter.resume(returning: forOthers) }
    }

    func isFirstRefusal(of host: String) -> Bool {
        state.withLock { state in
            state.refusedHosts.count < 1_000 && state.refusedHosts.insert(host).inserted
        }
    }
}

extension BatchContext.Live {
    fileprivate init(_ status: BatchStatus, _ profile: RequestProfile?) {
        self.init(
            changes: status.changes, profile: profile, ratePerHost: status.options.requests.ratePerHost,
            leftBefore: status.leftBefore)
    }
}
