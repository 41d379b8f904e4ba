internal import Glibc

/// A blocking client socket that shows what is on the wire.
package final class RawClient {
    /// Nobody listens there.
    package struct Refused: Error {}

    private let descriptor: Int32
    package private(set) var lastError: Int32 = 0

    /// Connects to a port of 127.0.0.1.
    package init(port: Int) throws(Refused) {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        let status = withUnsafeBytes(of: &address) {
            connect(descriptor, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count))
        }
        guard status == 0 else { throw Refused() }
    }

    deinit { close(descriptor) }

    /// Closes it by a reset when it is released.
    package func reset() {
        var hard = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &hard, socklen_t(MemoryLayout<linger>.size))
    }

    package func send(_ text: String) {
        let bytes = Array(text.utf8)
        _ = Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    }

    /// Sends blanks, and reads nothing, until the peer has closed the connection: then it is reset.
    package func sendUntilReset() {
        var socket = pollfd(fd: descriptor, events: 0, revents: 0)
        while poll(&socket, 1, 10) == 0 { send(" ") }
    }

    /// Everything until the end of the connection.
    package func readAll() -> String { readUntil(nil) }

    /// Until the text ends with `ending`, or the connection ends.
    package func readUntil(_ ending: String?) -> String {
        var all: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while ending.map({ !String(decoding: all, as: UTF8.self).hasSuffix("\r\n\r\n\($0)") }) ?? true {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            guard count > 0 else {
                if count < 0 { lastError = errno }
                break
            }
            all += buffer[..<count]
        }
        return String(decoding: all, as: UTF8.self)
    }
}
