internal import Glibc

/// The service manager that started this process, notified by the protocol of sd_notify(3): a datagram to the socket in NOTIFY_SOCKET. That
/// is one call, so libsystemd is not used.
struct ServiceManager: Sendable {
    private let socketPath: String
    /// Interval of watchdog notices; nil if none are expected.
    let watchdogInterval: Duration?

    /// * `environment`: of the process.
    /// Nil without a service manager.
    init?(environment: [String: String]) {
        guard let path = environment["NOTIFY_SOCKET"], path.hasPrefix("/") || path.hasPrefix("@"), path.utf8.count > 1
        else { return nil }
        socketPath = path
        watchdogInterval = Self.watchdog(environment)
    }

    /// sd_watchdog_enabled(3): a number of microseconds, which may be meant for another process.
    private static func watchdog(_ environment: [String: String]) -> Duration? {
        guard let text = environment["WATCHDOG_USEC"], let microseconds = Int64(text), microseconds > 0 else {
            return nil
        }
        if let pid = environment["WATCHDOG_PID"], pid != String(getpid()) { return nil }
        // Half of the limit, as the manual page recommends.
        return .microseconds(max(1, microseconds / 2))
    }

    enum Notice: Sendable, Equatable {
        /// Ready, or waiting for Redis as intended: dependent services may start.
        case ready
        /// One line for `systemctl status`.
        case status(String)
        case watchdog
        case stopping

        /// As sent.
        var text: String {
            switch self {
            case .ready: "READY=1"
            // A line end ends an assignment: external text must not start another.
            case .status(let line): "STATUS=" + line.split(whereSeparator: \.isNewline).joined(separator: " ")
            case .watchdog: "WATCHDOG=1"
            case .stopping: "STOPPING=1"
            }
        }
    }

    /// Sends notices, several in one datagram. Callable from any thread.
    /// - Returns: whether they were sent. For information: a missing manager is not an error.
    @discardableResult func tell(_ notices: Notice...) -> Bool {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        var name = Array(socketPath.utf8)
        // The abstract name space, unix(7).
        if name.first == UInt8(ascii: "@") { name[0] = 0 }
        guard name.count < MemoryLayout.size(ofValue: address.sun_path) else { return false }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
        let length = MemoryLayout<sa_family_t>.size + name.count
        let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        let message = Array(notices.map(\.text).joined(separator: "\n").utf8)
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                // Never blocks: a manager that does not read must not stop a worker.
                sendto(
                    descriptor, message, message.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT), $0,
                    socklen_t(length)) == message.count
            }
        }
    }

    /// Sends watchdog notices in time, each after `isAlive` has returned, so that a hanging process sends none. Ends when cancelled.
    func watch(_ isAlive: @Sendable () async -> Void) async {
        guard let watchdogInterval else { return }
        while !Task.isCancelled {
            await isAlive()
            tell(.watchdog)
            do { try await Task.sleep(for: watchdogInterval) } catch { return }
        }
    }
}
