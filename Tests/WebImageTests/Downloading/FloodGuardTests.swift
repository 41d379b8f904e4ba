import Glibc
import Testing
import Threading

@testable import WebImage

@Suite("Floods that never let curl return", .timeLimit(.minutes(5)))
struct FloodGuardTests {
    /// What ``FloodWatch`` says at each check of one call: the thread has used `step` of processor time since the last one, and taken so many
    /// bytes out of each connection.
    private func checks(_ reads: [[UInt64: Int64]], step: Duration, calls: [UInt64?]? = nil) -> [UInt64?] {
        var (watch, time, taken) = (FloodWatch(), Duration.seconds(100), [UInt64: Int64]())
        return reads.enumerated().map { index, read in
            time += step
            taken.merge(read) { $0 + $1 }
            return watch.check(call: calls.map { $0[index] } ?? 7, time: time) { taken }
        }
    }

    @Test(
        "The connection that is read without an end is shut down after two seconds of processor time, and again two seconds later"
    )
    func one() {
        let flood = [[UInt64]](repeating: [], count: 10).map { _ in [UInt64(1): Int64(5_000_000), 2: 10, 3: 0] }
        #expect(checks(flood, step: .milliseconds(500)) == [nil, nil, nil, nil, 1, nil, nil, nil, 1, nil])
        // Fewer checks, as on a machine where a check comes late: three intervals at least.
        #expect(checks(flood, step: .seconds(30)) == [nil, nil, nil, nil, 1, nil, nil, 1, nil, nil])
        // The thread hardly runs: its process was stopped, or others have the processor.
        #expect(checks(flood, step: .milliseconds(100)).allSatisfy { $0 == nil })
    }

    @Test("A call that reads many connections in turn, or ends, is left alone")
    func none() {
        let turns = (0..<40).map { [UInt64($0 / 2): Int64(6_000_000)] }
        #expect(checks(turns, step: .milliseconds(500)).allSatisfy { $0 == nil })
        let shared = (0..<40).map { _ in [UInt64(1): Int64(1_000_000), 2: 1_000_000] }
        #expect(checks(shared, step: .milliseconds(500)).allSatisfy { $0 == nil })
        let nothing = [[UInt64: Int64]](repeating: [1: 0], count: 40)
        #expect(checks(nothing, step: .milliseconds(500)).allSatisfy { $0 == nil })
        let flood = [[UInt64: Int64]](repeating: [1: 5_000_000], count: 40)
        let calls = (0..<40).map { UInt64($0 / 4) }
        #expect(checks(flood, step: .milliseconds(500), calls: calls).allSatisfy { $0 == nil })
        #expect(
            checks(flood, step: .milliseconds(500), calls: calls.map { $0 % 2 == 0 ? nil : $0 }).allSatisfy {
                $0 == nil
            }
        )
    }

    @Test("A shutdown reaches the connection that it is for, never another one that has its descriptor")
    func reused() throws {
        let sockets = CurlSockets(try #require(Epoll()))
        let (first, second) = (try Connection(), try Connection())
        let descriptor = first.ours
        sockets.didOpen(descriptor, to: "https://a.example")
        #expect(sockets.taken() == [1: 0])
        first.send(1000)
        #expect(sockets.taken() == [1: 0])
        first.receive(300)
        #expect(sockets.taken() == [1: 300])
        // The descriptor is another connection's from now on.
        _ = sockets.close(descriptor, by: { _ in 0 })
        #expect(sockets.taken().isEmpty && sockets.openCount == 0)
        try #require(dup2(second.ours, descriptor) == descriptor)
        sockets.shutDown(1, now: 10)
        sockets.didOpen(descriptor, to: "https://b.example")
        sockets.shutDown(1, now: 10)
        #expect(!second.isEnded)
        #expect(!sockets.wasShutDown("https://a.example", after: 0))
        sockets.shutDown(2, now: 10)
        #expect(second.isEnded)
        #expect(sockets.wasShutDown("https://b.example", after: 10))
        #expect(
            !sockets.wasShutDown("https://b.example", after: 10.5)
                && !sockets.wasShutDown("https://a.example", after: 0))
    }

    @Test("A flood is transient, and counts as a missing response of its host, whatever came before it")
    func failure() {
        let flood = WebImageError.flood(56)
        #expect(flood.code == .connectionLost && flood.isTransient && flood.underlyingCode == 56)
        #expect(HostHealth.isUnresponsive(flood, bytes: 0) && HostHealth.isUnresponsive(flood, bytes: 500))
        #expect(!HostHealth.isUnresponsive(WebImageError(.connectionLost, "reset", isTransient: true), bytes: 0))
        // The host accepts connections, also for workers that have it from another one: probes come every 8 s at least.
        var health = HostHealth()
        health.adopt(HostReport(host: "h", state: .silent, until: 5, since: 0, failures: 10, error: flood))
        #expect(!health.isAbandoned(since: 0, wasTried: false))
    }

    @Test("A call that reads a flood ends, and other connections stay")
    func ends() async throws {
        let sockets = CurlSockets(try #require(Epoll()))
        let (calls, flood, other) = (CurlCalls(), try Connection(), try Connection())
        sockets.didOpen(other.ours, to: "https://other.example")
        sockets.didOpen(flood.ours, to: "https://flood.example")
        let time = Locked(Duration.zero)
        let floods = FloodGuard(calls, of: sockets) {
            time.withLock { time in
                time += .seconds(1)
                return time
            }
        }
        let reader = ThreadExecutor(name: "reader")
        await withUnsafeContinuation { (end: UnsafeContinuation<Void, Never>) in
            reader.perform {
                calls.run { while flood.goesOn() {} }
                end.resume()
            }
        }
        floods.stop()
        reader.stop()
        #expect(sockets.wasShutDown("https://flood.example", after: 0))
        #expect(!other.isEnded && !sockets.wasShutDown("https://other.example", after: 0))
    }

    /// A TCP connection of this process with itself.
    private final class Connection: Sendable {
        let ours: Int32
        private let theirs: Int32

        init() throws {
            let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            defer { close(listener) }
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let ours = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            let isConnected = withUnsafeMutableBytes(of: &address) { bytes in
                let place = bytes.baseAddress!.assumingMemoryBound(to: sockaddr.self)
                return bind(listener, place, length) == 0 && listen(listener, 1) == 0
                    && getsockname(listener, place, &length) == 0 && connect(ours, place, length) == 0
            }
            try #require(isConnected)
            self.ours = ours
            theirs = accept(listener, nil, nil)
        }

        deinit {
            close(ours)
            close(theirs)
        }

        func send(_ count: Int) {
            let bytes = [UInt8](repeating: 1, count: count)
            #expect(Glibc.send(theirs, bytes, count, 0) == count)
            // It has arrived.
            var queued = [UInt8](repeating: 0, count: count)
            #expect(recv(ours, &queued, count, Int32(MSG_PEEK | MSG_WAITALL)) == count)
        }

        func receive(_ count: Int) {
            var bytes = [UInt8](repeating: 0, count: count)
            #expect(recv(ours, &bytes, count, Int32(MSG_WAITALL)) == count)
        }

        /// Sends 64 KiB and reads them; false: the connection has ended.
        func goesOn() -> Bool {
            var bytes = [UInt8](repeating: 1, count: 65_536)
            guard Glibc.send(theirs, bytes, bytes.count, Int32(MSG_NOSIGNAL)) > 0 else { return false }
            return recv(ours, &bytes, bytes.count, 0) > 0
        }

        /// Whether our end was shut down.
        var isEnded: Bool {
            var byte: UInt8 = 0
            return recv(ours, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) == 0
        }
    }
}
