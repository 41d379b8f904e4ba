internal import Glibc
internal import Prefetch

/// The open URLs of a batch in words and as JSON: what it waits for.
enum OpenURLText {
    /// * `at`: the time in Redis, ms since 1970.
    static func line(_ url: OpenURL, at: Int) -> String {
        guard let text = url.url else {
            return "\(Wording.count(Int(url.detail) ?? 0)) URLs of the list are not pushed yet"
        }
        var line = "line \(url.line ?? 0)  \(TerminalText.url(text))  \(what(url, at: at))"
        if url.attempt > 1 { line += ", try \(url.attempt)" }
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
        var seconds = time(nil) + (moment - at + 999) / 1000
        var parts = tm()
        localtime_r(&seconds, &parts)
        return [parts.tm_hour, parts.tm_min, parts.tm_sec].map { Wording.padded(Int($0)) }.joined(separator: ":")
    }

    static func object(_ url: OpenURL) -> JSONText {
        func text(_ value: String?) -> JSONText { value.map { $0.isEmpty ? .null : .string($0) } ?? .null }
        func time(_ value: Int?) -> JSONText { value.map { .string(UTCTime.text(milliseconds: $0)) } ?? .null }
        return .object([
            ("index", .int(url.index)), ("line", url.line.map { .int($0) } ?? .null),
            ("url", url.url.map { .url($0) } ?? .null),
            ("host", text(url.host)), ("attempt", .int(url.attempt)), ("state", .string(url.state.rawValue)),
            ("detail", text(ShownURL.text(url.detail))), ("since", time(url.since)), ("until", time(url.until)),
            ("worker", text(url.worker)),
        ])
    }
}
