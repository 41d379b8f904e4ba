internal import CLinux
internal import Glibc
internal import Threading

/// Reads keys on its own thread until it is stopped, or the terminal is gone.
final class DashInput: Sendable {
    private let ends: (read: Int32, write: Int32)

    /// Nil without a pipe.
    init?() {
        var pair: [Int32] = [-1, -1]
        guard pipe(&pair) == 0 else { return nil }
        for end in pair { _ = clinux_set_cloexec(end, 1) }
        ends = (pair[0], pair[1])
    }

    deinit {
        close(ends.read)
        close(ends.write)
    }

    /// Ends ``run(_:)``, from any thread.
    func stop() {
        var byte: UInt8 = 0
        _ = write(ends.write, &byte, 1)
    }

    /// Calls `body` with each key; false if the terminal is gone.
    func run(_ body: @escaping @Sendable (TerminalKey) -> Void) async -> Bool {
        let thread = ThreadPool(threads: 1, name: "keys")
        let wake = ends.read
        return await thread.run { Self.read(wake, body) }
    }

    private static func read(_ wake: Int32, _ body: (TerminalKey) -> Void) -> Bool {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 256)
        while true {
            var entries = [
                pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0),
                pollfd(fd: wake, events: Int16(POLLIN), revents: 0),
            ]
            // A lone escape is the Escape key, unless more bytes follow at once.
            let count = poll(&entries, 2, bytes.isEmpty ? -1 : 50)
            if count < 0 && errno == EINTR { continue }
            if entries[1].revents != 0 { return true }
            if count > 0 && entries[0].revents != 0 {
                let length = Glibc.read(STDIN_FILENO, &buffer, buffer.count)
                if length < 0 && errno == EINTR { continue }
                guard length > 0 else { return false }
                bytes += buffer[..<length]
            }
            for key in TerminalKey.take(from: &bytes, isEnd: count == 0) { body(key) }
        }
    }
}
