import Glibc
import Testing
import Threading

@testable import WebImage

@Suite("The sockets that curl waits for", .timeLimit(.minutes(5)))
struct CurlSocketsTests {
    /// CURL_POLL_IN, CURL_POLL_OUT and CURL_POLL_REMOVE.
    private let reads: Int32 = 1
    private let writes: Int32 = 2
    private let nothing: Int32 = 4
    private let epoll: Epoll
    private let sockets: CurlSockets

    init() throws {
        epoll = try #require(Epoll())
        sockets = CurlSockets(epoll)
    }

    /// What happens now, by descriptor: whether it can be written to.
    private func happening() -> [Int32: Bool] {
        var found: [Int32: Bool] = [:]
        for index in 0..<epoll.wait(milliseconds: 0) {
            guard let event = epoll.event(index) else { continue }
            found[Int32(event.token)] = event.isWritable
        }
        return found
    }

    @Test(
        "One that is idle between two requests stays where it is, and is awake for the next one without being added again"
    )
    func idle() throws {
        let pair = try SocketPair()
        sockets.didOpen(pair.ours, to: "")
        sockets.watch(pair.ours, what: reads)
        #expect(happening().isEmpty)
        sockets.watch(pair.ours, what: nothing)
        pair.send()
        // It is in epoll still; whoever looks is told that it is not for curl, and hears no more of it.
        #expect(happening() == [pair.ours: false])
        #expect(!sockets.isWanted(pair.ours))
        #expect(happening().isEmpty)
        sockets.watch(pair.ours, what: reads)
        #expect(happening() == [pair.ours: false])
        #expect(sockets.isWanted(pair.ours))
        // Nobody looked while it was idle: the next request finds it watched.
        pair.receive()
        sockets.watch(pair.ours, what: nothing)
        sockets.watch(pair.ours, what: reads)
        #expect(happening().isEmpty)
        pair.send()
        #expect(happening() == [pair.ours: false] && sockets.isWanted(pair.ours))
    }

    @Test("A wake-up ends one poll, which tells: no later one would see it again")
    func wakes() throws {
        let multi = try CurlMulti()
        #expect(multi.poll(milliseconds: 0) == .timeout)
        multi.wake()
        multi.wake()
        #expect(multi.poll(milliseconds: 60_000) == .wake)
        #expect(multi.poll(milliseconds: 0) == .timeout)
    }

    @Test("A server that closes an idle connection is noticed once, and wakes nobody again and again")
    func closedWhileIdle() throws {
        let pair = try SocketPair()
        sockets.didOpen(pair.ours, to: "")
        sockets.watch(pair.ours, what: reads)
        sockets.watch(pair.ours, what: nothing)
        pair.closeTheirs()
        #expect(happening()[pair.ours] != nil && !sockets.isWanted(pair.ours))
        #expect(happening().isEmpty)
    }

    @Test("What is waited for changes between reading and writing")
    func changes() throws {
        let pair = try SocketPair()
        sockets.didOpen(pair.ours, to: "")
        sockets.watch(pair.ours, what: writes)
        #expect(happening() == [pair.ours: true])
        sockets.watch(pair.ours, what: reads)
        #expect(happening().isEmpty)
        sockets.watch(pair.ours, what: reads | writes)
        #expect(happening() == [pair.ours: true])
    }

    @Test("A number that is closed and used again by another connection is watched anew", arguments: [true, false])
    func reused(isOurs: Bool) throws {
        let first = try SocketPair()
        let number = first.ours
        if isOurs { sockets.didOpen(number, to: "") }
        sockets.watch(number, what: reads)
        sockets.watch(number, what: nothing)
        // curl says that it closes a connection, and nothing of a descriptor it waits for a name with.
        if isOurs { _ = sockets.close(number, by: { _ in 0 }) }
        let second = try SocketPair(inPlaceOf: first)
        #expect(second.ours == number)
        if isOurs { sockets.didOpen(number, to: "") }
        second.send()
        #expect(happening().isEmpty)
        sockets.watch(number, what: reads)
        #expect(happening() == [number: false] && sockets.isWanted(number))
    }

    @Test("What is removed and not a connection gives no event, whatever happens to it")
    func removed() throws {
        let pair = try SocketPair()
        sockets.watch(pair.ours, what: reads)
        pair.send()
        #expect(happening() == [pair.ours: false] && sockets.isWanted(pair.ours))
        sockets.watch(pair.ours, what: nothing)
        #expect(happening().isEmpty)
        pair.send()
        pair.closeTheirs()
        #expect(happening().isEmpty)
        #expect(!sockets.isWanted(pair.ours))
    }

    /// Two sockets that are connected to each other.
    private final class SocketPair {
        let ours: Int32
        private var theirs: Int32
        private var isReplaced = false

        init() throws {
            var both: [Int32] = [-1, -1]
            try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0, &both) == 0)
            (ours, theirs) = (both[0], both[1])
        }

        /// One that has the number of another, which is closed by that and is not to be used any more.
        init(inPlaceOf other: SocketPair) throws {
            let new = try SocketPair()
            try #require(dup2(new.ours, other.ours) == other.ours)
            (ours, theirs) = (other.ours, dup(new.theirs))
            other.isReplaced = true
        }

        deinit {
            if !isReplaced { close(ours) }
            closeTheirs()
        }

        func send() {
            var byte: UInt8 = 1
            #expect(write(theirs, &byte, 1) == 1)
        }

        func receive() {
            var bytes = [UInt8](repeating: 0, count: 64)
            #expect(read(ours, &bytes, 64) > 0)
        }

        func closeTheirs() {
            if theirs >= 0 { close(theirs) }
            theirs = -1
        }
    }
}
