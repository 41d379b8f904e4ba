internal import Glibc

/// The datagram socket of a service manager, as systemd binds one: what services tell it can be read.
package final class NotifySocket: Sendable {
    private let directory = TemporaryDirectory()
    private let descriptor: Int32

    /// What NOTIFY_SOCKET has to be.
    package let path: String

    /// * `isAbstract`: a name beside the file system, as a manager in a container has.
    package init(isAbstract: Bool = false) {
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        path = isAbstract ? "@" + directory.path("notify") : directory.path("notify")
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        var name = Array(path.utf8)
        if isAbstract { name[0] = 0 }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
        // An abstract name has the length it is given, zeros included.
        let length = socklen_t(MemoryLayout<sa_family_t>.size + name.count)
        let bound = withUnsafePointer(to: &address) { [descriptor] pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, length) == 0 }
        }
        precondition(bound, "cannot bind \(path): \(String(cString: strerror(errno)))")
    }

    deinit { close(descriptor) }

    /// The next message, nil where none waits.
    package func next() -> String? {
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
        return count < 0 ? nil : String(decoding: buffer[..<count], as: UTF8.self)
    }

    /// Every message that waits.
    package func all() -> [String] {
        var messages: [String] = []
        while let message = next() { messages.append(message) }
        return messages
    }
}
