import Redis
import TestSupport
import Testing
import WebImage

@testable import Prefetch
@testable import Queue

@Suite("The set of batches", .timeLimit(.minutes(5)))
struct CatalogTests {
    @Test(
        "No odd reply to a reading command makes a batch unknown",
        arguments: [
            "-ERR odd", "-NOPERM this user has no permissions", "-NOAUTH Authentication required.", "$-1", "+OK",
        ])
    func oddReplies(reply: String) async throws {
        let server = try await RedisServer()
        let proxy = FaultProxy(target: server.socketPath)
        let queue = PrefetchQueue(
            connection: RedisConnection(try RedisConfiguration(url: proxy.url), name: "test"), waitLimit: .zero)
        _ = try await queue.batches.open(id: "b", nonce: "b", exactly: true, fields: [])
        for name in ["b", nil] {
            proxy.arm(.answer(containing: "EXISTS", reply: reply + "\r\n"))
            let error = await #expect(throws: PrefetchError.self) { try await queue.catalog.resolve(name) }
            #expect(error?.kind != .notFound && proxy.triggered > 0, "\(String(describing: error))")
            #expect(try await queue.catalog.resolve(name) == "b")
        }
        #expect(try await queue.catalog.ids() == ["b"])
    }

    @Test("Expired batches are passed over by who reads, and removed by who opens the next ones")
    func expired() async throws {
        let f = try await QueueFixture()
        for id in ["a", "b", "c"] { try await f.open(id) }
        for id in ["a", "c"] { try await f.redis("DEL", f.keys.batch(id)) }
        #expect(try await f.queue.catalog.ids() == ["b"])
        #expect(try await f.queue.catalog.resolve(nil) == "b")
        #expect(try await f.redis("ZCARD", f.keys.batches).int == 3)
        try await f.open("d")
        #expect(try await f.redis("ZRANGE", f.keys.batches, "0", "-1").array?.compactMap(\.string) == ["b", "d"])
        #expect(try await f.queue.catalog.ids() == ["b", "d"])
    }

    @Test("Of many batches the newest are read, and those that run; the others are counted")
    func newest() async throws {
        let f = try await QueueFixture()
        for number in 0..<1200 {
            try await f.redis("ZADD", f.keys.batches, "\(number)", "b\(number)")
            // Every third has expired.
            if number % 3 != 0 { try await f.redis("HSET", f.keys.batch("b\(number)"), "state", "done") }
        }
        for id in ["b1", "b4", "b1199"] { try await f.redis("SADD", f.keys.running, id) }
        let (ids, others) = try await f.queue.catalog.newest(5)
        #expect(ids == ["b1", "b4", "b1193", "b1195", "b1196", "b1198", "b1199"])
        #expect(others == 800 - 7)
        let all = try await f.queue.catalog.newest(1000)
        #expect(all.others == 0 && all.ids.count == 800)
        #expect(all.ids == (try await f.queue.catalog.ids()))
    }
}
