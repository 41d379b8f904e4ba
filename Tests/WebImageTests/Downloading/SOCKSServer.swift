internal import CLinux
internal import Glibc
import Threading

/// A SOCKS5 proxy on loopback that connects every request to one port (RFC 1928); it notes what was asked for.
final class SOCKSServer: Sendable {
    let port: Int
    private let listener: Int32
    private let log = Locked<[String]>([])

    /// What clients asked to be connected to: `host:port`.
    var asked: [String] { log.withLock { $0 } }

    init(target: Int) {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = Self.loopback(0)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, size) == 0 && listen(descriptor, 16) == 0
                    && getsockname(descriptor, $0, &size) == 0
            }
        }
        precondition(isBound)
        port = Int(UInt16(bigEndian: address.sin_port))
        listener = descriptor
        let log = log
        ThreadRunner.start {
            while true {
                let client = accept(descriptor, nil, nil)
                guard client >= 0 else { return }
                ThreadRunner.start { Self.serve(client, target, log) }
            }
        }
    }

    deinit {
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
    }

    private static func loopback(_ port: Int) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }

    private static func read(_ socket: Int32, _ count: Int) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        return recv(socket, &bytes, count, Int32(MSG_WAITALL)) == count ? bytes : nil
    }

    private static func serve(_ client: Int32, _ target: Int, _ log: Locked<[String]>) {
        defer { close(client) }
        guard let greeting = read(client, 2), read(client, Int(greeting[1])) != nil else { return }
        send(client, [5, 0] as [UInt8], 2, Int32(MSG_NOSIGNAL))
        guard let head = read(client, 4) else { return }
        var host = ""
        if head[3] == 3, let count = read(client, 1), let name = read(client, Int(count[0])) {
            host = String(decoding: name, as: UTF8.self)
        } else if head[3] == 1, let bytes = read(client, 4) {
            host = bytes.map { "\($0)" }.joined(separator: ".")
        }
        guard let port = read(client, 2) else { return }
        log.withLock { $0.append("\(host):\(Int(port[0]) << 8 | Int(port[1]))") }
        let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer { close(server) }
        var address = loopback(target)
        let isConnected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(server, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        send(client, [5, isConnected ? 0 : 1, 0, 1, 0, 0, 0, 0, 0, 0] as [UInt8], 10, Int32(MSG_NOSIGNAL))
        guard isConnected else { return }
        pump(client, server)
    }

    /// Passes bytes on in both directions until one side ends.
    private static func pump(_ one: Int32, _ other: Int32) {
        var sockets = [
            pollfd(fd: one, events: Int16(POLLIN), revents: 0), pollfd(fd: other, events: Int16(POLLIN), revents: 0),
        ]
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while poll(&sockets, 2, -1) > 0 {
            for (index, from) in [one, other].enumerated() where sockets[index].revents != 0 {
                let count = recv(from, &buffer, buffer.count, 0)
                guard count > 0, send(index == 0 ? other : one, buffer, count, Int32(MSG_NOSIGNAL)) == count else {
                    return
                }
            }
        }
    }
}

/// Threads that may block.
enum ThreadRunner {
    static func start(_ body: @escaping @Sendable () -> Void) {
        var thread = pthread_t()
        let box = Unmanaged.passRetained(Body(run: body))
        pthread_create(
            &thread, nil,
            { context in
                Unmanaged<Body>.fromOpaque(context!).takeRetainedValue().run()
                return nil
            }, box.toOpaque())
        pthread_detach(thread)
    }

    private final class Body: Sendable {
        let run: @Sendable () -> Void
        init(run: @escaping @Sendable () -> Void) { self.run = run }
    }
}
