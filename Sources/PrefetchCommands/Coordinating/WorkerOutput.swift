internal import CLinux
internal import Glibc
internal import Threading

/// What the workers of a `run` print, on its way through this process: on a terminal whose last lines this process redraws, nobody else
/// may write.
final class WorkerOutput: Sendable {
    /// What becomes stdout and stderr of the workers.
    let descriptor: Int32
    private let hasEnded = Latch()
    private let isOpen = Locked(true)

    /// Nil where nobody else prints them, or no pipe can be had: then the workers write for themselves.
    init?(isNeeded: Bool) {
        var ends: [Int32] = [-1, -1]
        guard isNeeded, pipe(&ends) == 0 else { return nil }
        for end in ends { _ = clinux_set_cloexec(end, 1) }
        descriptor = ends[1]
        let (input, hasEnded) = (ends[0], hasEnded)
        let thread = ThreadPool(threads: 1, name: "output")
        Task {
            await thread.run { Self.pass(input) }
            hasEnded.open()
        }
    }

    /// Returns when everything was printed: the workers must have ended. Later calls only wait.
    func close() async {
        let wasOpen = isOpen.withLock { isOpen in
            defer { isOpen = false }
            return isOpen
        }
        if wasOpen { Glibc.close(descriptor) }
        await hasEnded.wait()
    }

    /// Notes line by line until no writer is left.
    private static func pass(_ input: Int32) {
        defer { Glibc.close(input) }
        var rest: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = read(input, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            rest += buffer[..<count]
            while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
                Console.note(String(decoding: rest[..<end], as: UTF8.self))
                rest.removeSubrange(...end)
            }
        }
        if !rest.isEmpty { Console.note(String(decoding: rest, as: UTF8.self)) }
    }
}
