import Glibc
import TestSupport
import Testing
import Threading

@testable import PrefetchCommands

@Suite("Service manager", .timeLimit(.minutes(5)))
struct ServiceManagerTests {
    private func manager(_ socket: NotifySocket, _ more: [String: String] = [:]) throws -> ServiceManager {
        try #require(ServiceManager(environment: ["NOTIFY_SOCKET": socket.path].merging(more) { $1 }))
    }

    @Test("Notices arrive as datagrams, on a path and on an abstract name", arguments: [false, true])
    func notices(isAbstract: Bool) throws {
        let socket = NotifySocket(isAbstract: isAbstract)
        let manager = try manager(socket)
        #expect(manager.tell(.ready, .status("works")))
        #expect(manager.tell(.watchdog))
        #expect(manager.tell(.stopping))
        #expect(socket.all() == ["READY=1\nSTATUS=works", "WATCHDOG=1", "STOPPING=1"])
    }

    @Test("A status of several lines is one assignment")
    func oneLine() throws {
        let socket = NotifySocket()
        #expect(try manager(socket).tell(.status("a\nMAINPID=1\r\nb")))
        #expect(socket.next() == "STATUS=a MAINPID=1 b")
    }

    @Test("Nobody is told where no socket is named", arguments: [nil, "", "@", "relative/socket", "vsock:2:1"])
    func none(path: String?) {
        #expect(ServiceManager(environment: path.map { ["NOTIFY_SOCKET": $0] } ?? [:]) == nil)
    }

    @Test("A manager that is gone, or whose name is too long, changes nothing")
    func gone() throws {
        let path = NotifySocket().path
        for path in [path, "/" + String(repeating: "x", count: 200)] {
            let manager = try #require(ServiceManager(environment: ["NOTIFY_SOCKET": path]))
            #expect(!manager.tell(.ready))
        }
    }

    @Test("Half of what WATCHDOG_USEC allows, where it is meant for this process")
    func interval() throws {
        let socket = NotifySocket()
        func interval(_ more: [String: String]) throws -> Duration? { try manager(socket, more).watchdogInterval }
        #expect(try interval(["WATCHDOG_USEC": "30000000"]) == .seconds(15))
        #expect(try interval(["WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "\(getpid())"]) == .seconds(15))
        #expect(try interval(["WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"]) == nil)
        for text in ["", "0", "-1", "x"] { #expect(try interval(["WATCHDOG_USEC": text]) == nil) }
        #expect(try interval([:]) == nil)
    }

    @Test("Watchdog notices go on, and stop where what has to answer hangs")
    func hangs() async throws {
        let socket = NotifySocket()
        let manager = try manager(socket, ["WATCHDOG_USEC": "2000"])
        let (asked, hanging) = (Locked(0), Latch())
        let watch = Task {
            await manager.watch {
                let count = asked.withLock { asked in
                    asked += 1
                    return asked
                }
                if count > 3 { await hanging.wait() }
            }
        }
        defer {
            watch.cancel()
            hanging.open()
        }
        try await until { asked.withLock({ $0 }) >= 4 }
        #expect(socket.all() == Array(repeating: "WATCHDOG=1", count: 3))
    }
}
