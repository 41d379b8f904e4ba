internal import FoundationEssentials
internal import Glibc
internal import Prefetch

extension LogFormat {
    private static func kind(_ event: PrefetchWorker.Event) -> (level: String, name: String, worker: String?) {
        switch event {
        case .joined(let name): ("info", "joined", name)
        case .redisAway: ("warn", "redisAway", nil)
        case .redisBack: ("info", "redisBack", nil)
        case .warning: ("warn", "warning", nil)
        case .lost(let name): ("warn", "lost", name)
        case .paused: ("error", "paused", nil)
        case .resumed: ("info", "resumed", nil)
        case .held(let isHeld): isHeld ? ("error", "held", nil) : ("info", "diskAnswers", nil)
        case .pausedByCommand(let isPaused): ("info", isPaused ? "pausedByCommand" : "resumedByCommand", nil)
        case .concurrency: ("info", "concurrency", nil)
        case .refused: ("warn", "refused", nil)
        }
    }

    static func name(_ event: PrefetchWorker.Event) -> String { kind(event).name }

    /// `{"time":"…","level":"warn","event":"redisAway","pid":4711,"message":"…"}`
    /// * `leftOut`: suppressed lines of the same kind before this one.
    static func object(_ event: PrefetchWorker.Event, _ message: String, leftOut: Int = 0) -> LogLine {
        let (level, name, worker) = kind(event)
        return LogLine(level: level, event: name, worker: worker, message: message, leftOut: leftOut)
    }

    /// What a worker says beside its events.
    static func note(_ text: String) -> LogLine {
        LogLine(
            level: text.hasPrefix("warning: ") ? "warn" : "info", event: "note", worker: nil, message: text, leftOut: 0)
    }
}

/// A line of `prefetch-worker --log-format json`.
struct LogLine: Record {
    let time = Moment(seconds: Glibc.time(nil)), pid = Int(getpid())
    let level: String, event: String
    let worker: String?
    let message: String
    let leftOut: Int

    static let fields: [Field<LogLine>] = [
        Field("time", \.time), Field("level", about: "info, warn or error", \.level), Field("event", \.event),
        Field("pid", \.pid), .ifKnown("worker", \.worker), Field("message") { Masked.sentence($0.message) },
        .ifKnown("left_out", { $0.leftOut > 0 ? $0.leftOut : nil }),
    ]
}
