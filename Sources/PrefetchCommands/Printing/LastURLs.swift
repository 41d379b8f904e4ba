internal import Prefetch
internal import Redis
internal import WebImage

/// The reasons for which the last URLs of a batch wait, where they delay its end: no rate shows when they end.
struct LastURLs: Equatable {
    /// URLs that wait for the same reason.
    struct Group: Equatable {
        var state: OpenURL.State
        var count: Int
        /// Seconds until the last of them goes on or times out; nil where that is not known.
        var seconds: Int?
    }

    /// How many URLs may be left, and how long none has ended: before that the rate is enough.
    private static let most = 20, quiet = 2_000

    /// How many URLs have not ended.
    var count: Int
    /// The largest group first.
    var groups: [Group]

    /// * `urls`: some of the URLs that are open.
    /// * `at`: the time in Redis, ms since 1970.
    init(count: Int, _ urls: [OpenURL], at: Int) {
        self.count = count
        groups = Dictionary(grouping: urls, by: \.state).map { state, urls in
            let ends = urls.compactMap(\.until)
            let seconds = ends.count == urls.count ? ends.max().map { (max(0, $0 - at) + 999) / 1000 } : nil
            return Group(state: state, count: urls.count, seconds: seconds)
        }
        .sorted { ($0.count, $1.state.rawValue) > ($1.count, $0.state.rawValue) }
    }

    /// Reads them where few are left and none of them ends; nil otherwise.
    static func read(_ status: BatchStatus, _ queue: PrefetchQueue) async throws(RedisError) -> LastURLs? {
        let left = status.total - status.counts.finished
        guard status.state == .running, status.isSealed, !status.isEffectivelyPaused, (1...most).contains(left),
            status.at - max(status.last, status.created) >= quiet
        else { return nil }
        let urls = try await queue.openURLs.oldest(of: status, most: most)
        return urls.isEmpty ? nil : LastURLs(count: left, urls, at: status.at)
    }

    /// `last 3 URLs: 2 stalled, 12 s at most; 1 waiting for the next try, 4 s at most`
    var text: String {
        "last \(Wording.count(count, "URL")): "
            + groups.map { "\($0.count) \(Self.words($0.state))\($0.seconds.map { ", \($0) s at most" } ?? "")" }
            .joined(separator: "; ")
    }

    /// `2-stalled(12s),1-retrying(4s)`
    var word: String {
        groups.map { "\($0.count)-\($0.state.rawValue)\($0.seconds.map { "(\($0)s)" } ?? "")" }.joined(separator: ",")
    }

    private static func words(_ state: OpenURL.State) -> String {
        switch state {
        case .transferring: "in transfer"
        case .stalled: "stalled"
        case .waitingForHost: "waiting for the host"
        case .waitingForSlot: "waiting for a slot of the worker"
        case .retrying: "waiting for the next try"
        case .locked: "fetched by another process"
        case .verifying: "with the decoder"
        case .claimed: "claimed and not begun"
        case .paused: "with a paused worker"
        case .workerSilent: "with a worker without a heartbeat"
        case .queued: "waiting in Redis"
        case .notPushed: "not pushed yet"
        }
    }
}
