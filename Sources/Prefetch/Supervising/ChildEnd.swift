package enum ChildEnd: Sendable, Equatable, CustomStringConvertible {
    case exited(Int32)
    case signalled(Int32)

    /// `exit code 69`, `signal 11 (SIGSEGV)`
    package var description: String {
        switch self {
        case .exited(let code): "exit code \(code)"
        case .signalled(let number): "signal \(number)" + (Self.names[number].map { " (\($0))" } ?? "")
        }
    }

    /// Numbers of Linux on every architecture Swift runs on (signal(7)).
    private static let names: [Int32: String] = [
        1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE",
        9: "SIGKILL; the kernel sends it when memory runs out", 11: "SIGSEGV", 13: "SIGPIPE", 15: "SIGTERM",
        24: "SIGXCPU", 25: "SIGXFSZ", 31: "SIGSYS",
    ]
}
