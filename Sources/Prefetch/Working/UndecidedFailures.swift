internal import Threading
internal import WebImage

/// Failed URLs whose failure may be this machine's own: no connection, no name, no TLS, no response, or a page instead of an image. They have
/// no outcome until something tells whose failure it is: an image that was fetched after them, or ``WitnessLoop``.
final class UndecidedFailures: Sendable {
    enum Verdict: Sendable {
        /// The list's: reported.
        case theirs
        /// Nobody can tell: reported, but not listed.
        case unknown
        /// This machine's: the URL goes back.
        case ours
        /// The worker leaves, or the batch is over: the URL stays open.
        case open
    }

    /// What the failures have in common.
    struct Evidence: Sendable {
        var oldest: ContinuousClock.Instant
        var origins: Set<ByteText> = []
        /// Whether any of the URLs would be put on the blacklist.
        var isListable = false
        /// What a portal answered for most of them; nil: there is none.
        var portal: String?

        /// Several hosts hardly fail at once by themselves.
        var isOfManyHosts: Bool { origins.count >= 3 }
    }

    private struct Failure {
        let at = ContinuousClock.now
        let url: String
        let error: WebImageError
        let isListable: Bool
        let waiter = Waiter<Verdict>()
    }

    private struct State {
        var undecided: [Failure] = []
        var followers = 0
        /// What becomes of every failure from now on; nil: it is undecided.
        var verdict: Verdict?
    }

    /// The most that are undecided: then the worker claims nothing.
    static let most = 4_096
    /// A portal answers for at least so many hosts.
    private static let fewestHosts = 5

    private let state = Locked(State())
    private let bell: WakeSignal

    /// * `bell`: rings when the first failure is undecided.
    init(bell: WakeSignal) { self.bell = bell }

    var count: Int { state.withLock { $0.undecided.count } }

    var oldest: ContinuousClock.Instant? { state.withLock { $0.undecided.first?.at } }

    /// URLs that wait for the end of an equal one, which may be undecided.
    var followers: Int { state.withLock { $0.followers } }

    /// Runs the wait for the end of an equal URL.
    nonisolated(nonsending) func following<Value>(
        _ body: nonisolated(nonsending) () async -> Value
    ) async -> Value {
        state.withLock { $0.followers += 1 }
        defer { state.withLock { $0.followers -= 1 } }
        return await body()
    }

    /// Holds a failure; returns when it is known whose it is.
    /// * `isListable`: its URL would be put on the blacklist.
    func verdict(on error: WebImageError, of url: String, isListable: Bool) async -> Verdict {
        let failure = Failure(url: url, error: error, isListable: isListable)
        let (known, isFirst): (Verdict?, Bool) = state.withLock { state in
            if let verdict = state.verdict { return (verdict, false) }
            state.undecided.append(failure)
            return (nil, state.undecided.count == 1)
        }
        if let known { return known }
        if isFirst { bell.ring() }
        let verdict = await failure.waiter.wait(ifCancelled: .open)
        if verdict == .open { state.withLock { $0.undecided.removeAll { $0.waiter === failure.waiter } } }
        return verdict
    }

    /// Ends the wait of the failures before an instant, in their order.
    func settle(before instant: ContinuousClock.Instant, as verdict: Verdict) {
        let settled = state.withLock { state in
            // Mostly there are none.
            guard let first = state.undecided.first, first.at < instant else { return ArraySlice<Failure>() }
            let count = state.undecided.firstIndex { $0.at >= instant } ?? state.undecided.count
            defer { state.undecided.removeFirst(count) }
            return state.undecided[..<count]
        }
        for failure in settled { failure.waiter.answer(verdict) }
    }

    /// Holds nothing from now on: every failure, also those undecided now, is this machine's (`ours`), or stays open.
    func close(as verdict: Verdict) {
        let undecided = state.withLock { state in
            // A worker that leaves stays so.
            if state.verdict != .open { state.verdict = verdict }
            defer { state.undecided = [] }
            return state.undecided
        }
        for failure in undecided { failure.waiter.answer(verdict) }
    }

    func reopen() { state.withLock { if $0.verdict == .ours { $0.verdict = nil } } }

    /// Nil if none are undecided.
    func evidence() -> Evidence? {
        let undecided = state.withLock { $0.undecided }
        guard let first = undecided.first else { return nil }
        var evidence = Evidence(oldest: first.at, isListable: undecided.contains { $0.isListable })
        var pages: [Substance: (origins: Set<ByteText>, message: String)] = [:]
        for failure in undecided {
            let origin = Self.origin(of: failure.url)
            evidence.origins.insert(origin)
            guard let page = failure.error.page else { continue }
            for substance in [page.place.map { .place(ByteText($0)) }, Substance.digest(page.digest)].compactMap({ $0 })
            {
                pages[substance, default: ([], failure.error.message)].origins.insert(origin)
            }
        }
        if let (page, (origins, message)) = pages.max(by: { $0.value.origins.count < $1.value.origins.count }),
            origins.count >= Self.fewestHosts, origins.count * 2 > evidence.origins.count
        {
            evidence.portal = if case .place(let place) = page { "leads to \(place)" } else { message }
        }
        return evidence
    }

    var areOfManyHosts: Bool { evidence()?.isOfManyHosts ?? false }

    /// What makes two pages the same: where they were found, or what they say.
    private enum Substance: Hashable {
        case place(ByteText)
        case digest(UInt64)
    }

    static func origin(of url: String) -> ByteText { ByteText((try? RequestURL(url))?.origin ?? url) }
}
