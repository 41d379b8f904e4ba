import Glibc
import TestSupport
import Testing
import Threading

@testable import WebImage

@Suite("Several at the name of one image", .timeLimit(.minutes(5)))
struct ImageNameTests {
    private let directory = TemporaryDirectory()
    private let key = CacheKey("http://example.org/a.png")
    private let pool = ThreadPool(threads: 2, name: "names")

    /// Every other one is longer, so that the record of another one is found out.
    private func picture(_ round: Int) -> [UInt8] { Array("picture \(round)\(round % 2 == 0 ? "" : " of two")".utf8) }

    private func cache(_ mode: CacheMode) throws -> DiskCache {
        try DiskCache(directory: directory.path, configuration: mode.configuration())
    }

    private func atOnce(
        _ one: @escaping @Sendable () throws -> Void, _ other: @escaping @Sendable () throws -> Void
    ) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for work in [one, other] { group.addTask(executorPreference: pool) { try work() } }
            try await group.waitForAll()
        }
    }

    @Test("Whoever moves a damaged file aside leaves the one that takes its place", arguments: CacheMode.allCases)
    func movingAside(mode: CacheMode) async throws {
        let (mine, yours) = (try cache(mode), try cache(mode))
        for round in 0..<500 {
            let bytes = picture(round)
            try mine.images.remove(key)
            try mine.images.store(ImageBody(bytes), for: key, record: record(bytes))
            damage(mine.images.path(of: key), length: 3)
            try await atOnce {
                _ = try mine.images.find(key)
            } _: {
                try yours.images.store(ImageBody(bytes), for: key, record: record(bytes))
            }
            let entry = try #require(try mine.images.find(key), "round \(round)")
            #expect(try entry.standing == .verified && entry.bytes() == bytes)
        }
        #expect(try mine.account.usage().count == 1)
    }
}
