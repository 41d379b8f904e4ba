internal import Glibc
internal import Prefetch

/// The open URLs of a batch: what it waits for.
enum OpenURLText {
    /// * `at`: the time in Redis, ms since 1970.
    static func line(_ url: OpenURL, at: Int) -> String {
        guard let text = url.url else {
            return "\(Wording.count(Int(url.detail) ?? 0)) URLs of the list are not pushed yet"
        }
        var line = "line \(url.line ?? 0)  \(TerminalText.url(text))  \(what(url, at: at))"
        if url.tries > 1 { line += ", try \(url.tries)" }
        if let worker = url.worker { line += "  (\(TerminalText.escaped(worker)))" }
        return line
    }

    private static func what(_ url: OpenURL, at: Int) -> String {
        let elapsed = url.since.map { " for \(Wording.seconds(Double(max(0, at - $0)) / 1000))" } ?? ""
        let detail = TerminalText.escaped(url.detail)
        let host = TerminalText.escaped(url.host ?? "its host")
        switch url.state {
        case .transferring: return "in transfer\(elapsed)"
        case .stalled:
            let time = url.until.map { "; timeout at \(clock($0, at: at))" } ?? ""
            return "stalled: no byte\(elapsed); it holds no slot\(time)"
        case .waitingForHost where !detail.isEmpty:
            let time = url.until.map { "; asked again at \(clock($0, at: at))" } ?? ""
            return "waiting\(elapsed) for \(host): \(detail)\(time)"
        case .waitingForHost: return "waiting\(elapsed) for a slot of \(host) (--max-per-host)"
        case .waitingForSlot: return "waiting\(elapsed) for a slot of its worker (--max-concurrent-downloads)"
        case .retrying:
            let time = url.until.map { " at \(clock($0, at: at))" } ?? ""
            return "next try\(time)" + (detail.isEmpty ? "" : " after \(detail)")
        case .locked: return "waiting\(elapsed) for another process that fetches the same key"
        case .verifying: return "with the decoder"
        case .claimed: return "claimed and not begun"
        case .paused: return "its worker is paused: \(detail)"
        case .workerSilent:
            let left = Wording.seconds(Double(max(0, (url.until ?? at) - at)) / 1000)
            return "its worker has been silent\(elapsed); others take it over in \(left)"
        case .queued: return "waiting in Redis" + (detail.isEmpty ? "" : ": \(detail)")
        case .notPushed: return "not pushed yet"
        }
    }

    /// 12:41:07, local time. Counted from now, so that it is right also where the clock of Redis is not.
    private static func clock(_ moment: Int, at: Int) -> String {
        UTCTime.clock(seconds: Int(time(nil)) + (moment - at + 999) / 1000)
    }
}

extension OpenURL: Record {
    static let fields: [Field<OpenURL>] = [
        Field("index", \.index), Field("line", \.line), Field("url") { $0.url.map { Masked.url($0) } },
        Field("host", \.host?.unlessEmpty), Field("tries", \.tries), Field("state", \.state),
        Field("detail") { $0.detail.unlessEmpty.map { Masked.sentence($0) } }, Field("since") { Moment($0.since) },
        Field("until") { Moment($0.until) }, Field("worker", \.worker?.unlessEmpty),
    ]
}

/// `why --oldest --json`.
struct OldestAnswer: Record {
    let batch: String
    let oldest: [OpenURL]

    static let fields: [Field<Self>] = [
        .version, Field("batch", \.batch), Field("oldest", about: "None if nothing is open.", \.oldest),
    ]
}
