internal import CLinux
internal import Glibc

/// One accepted connection: unprocessed input, and the remaining steps of the current response.
final class OriginConnection {
    enum Pause {
        case done
        /// The socket's send buffer is full.
        case blocked
        /// A `wait` step, in seconds.
        case waiting(Double)
        case held
        case ended
    }

    let id: Int
    let socket: Int32
    private(set) var answering: String?
    /// End of the current wait in monotonic seconds; nil if not waiting.
    private(set) var wakeTime: Double?
    private(set) var watchesWrites = false
    private var isHeld = false
    private var input: [UInt8] = []
    private var steps: [OriginStep] = []
    private var next = 0
    private var sent = 0

    init(id: Int, socket: Int32) {
        self.id = id
        self.socket = socket
        var one: Int32 = 1
        setsockopt(socket, Int32(IPPROTO_TCP), TCP_NODELAY, &one, 4)
    }

    func answer(_ path: String?) { answering = path }

    func wait(until time: Double?) { wakeTime = time }

    func setWatchesWrites(_ watches: Bool) { watchesWrites = watches }

    deinit { close(socket) }

    /// Reads available bytes. False if the peer has closed the connection.
    func receive(into buffer: inout [UInt8]) -> Bool {
        let count = buffer.withUnsafeMutableBytes { recv(socket, $0.baseAddress, $0.count, 0) }
        if count > 0 {
            input.append(contentsOf: buffer[..<count])
            return input.count < 1 << 20
        }
        return count < 0 && (errno == EAGAIN || errno == EINTR)
    }

    func nextRequest() -> [UInt8]? {
        guard input.count >= 4 else { return nil }
        let end: Int? = input.withUnsafeBytes { bytes in
            var index = 3
            while index < bytes.count {
                // The end marker has four bytes, so checking every fourth byte suffices until one of its bytes is found.
                switch bytes[index] {
                case 10 where bytes[index - 1] == 13 && bytes[index - 2] == 10 && bytes[index - 3] == 13:
                    return index - 3
                case 10, 13: index += 1
                default: index += 4
                }
            }
            return nil
        }
        guard let end else { return nil }
        defer {
            if end + 4 == input.count { input.removeAll(keepingCapacity: true) } else { input.removeFirst(end + 4) }
        }
        return Array(input[..<end])
    }

    func begin(_ steps: [OriginStep]) {
        self.steps = steps
        next = 0
        sent = 0
    }

    func release() {
        isHeld = false
        next += 1
    }

    func advance() -> Pause {
        while next < steps.count {
            switch steps[next] {
            case .send(let bytes):
                let more = next + 1 < steps.count && !bytes.isEmpty && steps[next + 1].isBytes
                guard let pause = send(bytes, more: more) else { break }
                return pause
            case .sendForever(let bytes):
                if let pause = send(bytes, more: false) { return pause }
                sent = 0
                // Yields to other connections: this step never ends by itself.
                return .waiting(0)
            case .sendFile(let file):
                guard let pause = send(file) else { break }
                return pause
            case .wait(let seconds):
                next += 1
                sent = 0
                return .waiting(seconds)
            case .hold:
                isHeld = true
                return .held
            case .close:
                return .ended
            case .reset:
                var hard = linger(l_onoff: 1, l_linger: 0)
                setsockopt(socket, SOL_SOCKET, SO_LINGER, &hard, socklen_t(MemoryLayout<linger>.size))
                return .ended
            }
            next += 1
            sent = 0
        }
        steps = []
        next = 0
        return .done
    }

    private func send(_ bytes: [UInt8], more: Bool) -> Pause? {
        let flags = Int32(MSG_NOSIGNAL) | (more ? Int32(MSG_MORE) : 0)
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes { Glibc.send(socket, $0.baseAddress! + sent, $0.count - sent, flags) }
            guard count >= 0 else {
                if errno == EINTR { continue }
                return errno == EAGAIN ? .blocked : .ended
            }
            sent += count
        }
        return nil
    }

    private func send(_ file: OriginFile) -> Pause? {
        var offset = off_t(sent)
        while offset < file.count {
            let count = sendfile(socket, file.descriptor, &offset, file.count - Int(offset))
            sent = Int(offset)
            if count == 0 { return .ended }
            if count < 0 {
                if errno == EINTR { continue }
                return errno == EAGAIN ? .blocked : .ended
            }
        }
        return nil
    }
}

extension OriginStep {
    /// Whether the kernel may combine it with earlier bytes in a packet (MSG_MORE).
    fileprivate var isBytes: Bool {
        switch self {
        case .send(let bytes): !bytes.isEmpty
        case .sendFile(let file): file.count > 0
        default: false
        }
    }
}
