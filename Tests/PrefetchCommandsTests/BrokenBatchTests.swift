import ArgumentParser
import Prefetch
import Queue
import Redis
import TestSupport
import Testing
import WebImage

@testable import PrefetchCommands

@Suite("A batch that cannot end", .timeLimit(.minutes(5)))
struct BrokenBatchTests {
    @Test("run goes on with the unfinished batch of its list, and makes a new one where that is broken")
    func madeAnew() async throws {
        let (server, folder) = (try await RedisServer(), TemporaryDirectory())
        let queue = PrefetchQueue(
            connection: RedisConnection(try RedisConfiguration(url: server.url), name: "test"))
        folder.write(Array("http://h/1\nhttp://h/2\n".utf8), to: "urls.txt")
        let list = try ListStream([folder.path("urls.txt")])
        let command = try RunCommand.parse([folder.path("urls.txt")])
        let source = BatchSource.list(
            list, try command.batch.settings(), cache: try DiskCache(directory: folder.path("cache")))
        func open() async throws -> String? {
            guard case .batch(let batch) = try await source.open(queue, feeding: queue, words: nil) else { return nil }
            return batch.id
        }
        let first = try #require(try await open())
        #expect(try await open() == first)
        try await queue.connection.command([
            "HSET", RedisArgument(queue.keys.batch(first)), "broken", "2 open URLs are in no job",
        ])
        let second = try #require(try await open())
        #expect(second != first)
        #expect(try await open() == second)
        #expect(
            Health.broken(first, "2 open URLs are in no job")
                == "\(first) cannot end (2 open URLs are in no job): remove it with prefetch-coord rm --force \(first)")
    }
}
