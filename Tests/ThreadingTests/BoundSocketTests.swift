import Glibc
import Testing
import Threading

@Suite("Sockets of servers", .timeLimit(.minutes(5)))
struct BoundSocketTests {
    @Test(
        "A socket has the port that was asked for, or any, and neither blocks nor is inherited",
        arguments: ["127.0.0.1", "::1"])
    func port(address: String) {
        let any = BoundSocket.open(address, port: 0, reusesPort: false)
        let port = BoundSocket.port(of: any)
        #expect(any >= 0 && (1...65_535).contains(port))
        #expect(fcntl(any, F_GETFL) & O_NONBLOCK != 0 && fcntl(any, F_GETFD) & FD_CLOEXEC != 0)
        let second = BoundSocket.open(address, port: port, reusesPort: false)
        #expect(second == -1 && errno == EADDRINUSE)
        close(any)
        let again = BoundSocket.open(address, port: port, reusesPort: true)
        #expect(again >= 0 && BoundSocket.port(of: again) == port)
        close(again)
    }

    @Test(
        "What is no address of this machine is refused",
        arguments: [
            ("localhost", 0, EINVAL), ("", 0, EINVAL), ("127.0.0.1", 65_536, EINVAL), ("127.0.0.1", -1, EINVAL),
            ("192.0.2.1", 0, EADDRNOTAVAIL),
        ])
    func refused(address: String, port: Int, code: Int32) {
        let socket = BoundSocket.open(address, port: port, reusesPort: true)
        #expect(socket == -1 && errno == code)
    }
}
