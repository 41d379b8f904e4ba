import Glibc
import Origin
import TestSupport
import Testing
import Threading

@testable import WebImage

@Suite("Checking a cache on several threads", .timeLimit(.minutes(5)))
struct CacheAuditThreadTests {
    private let directory = TemporaryDirectory()

    private func picture(_ index: Int) -> [UInt8] {
        GeneratedImage.png(seed: UInt64(index), width: 4 + index % 5, height: 4)
    }

    /// Every fifth has lost its end, every seventh its record.
    private func filled(_ count: Int) throws -> DiskCache {
        let cache = try DiskCache(directory: directory.path)
        for index in 0..<count {
            let (bytes, name) = (picture(index), "\(index)")
            try cache.images.store(ImageBody(bytes), for: CacheKey(name), record: record(bytes))
            let path = cache.images.path(of: CacheKey(name))
            if index.isMultiple(of: 5) {
                damage(path, length: 20)
            } else if index.isMultiple(of: 7) {
                #expect(unlink(path) == 0)
                directory.write(bytes, to: CacheKey(name).path)
            }
        }
        return cache
    }

    @Test("Any number of threads finds the same, and tells of it in the same order", arguments: [1, 2, 7, 256, nil])
    func order(jobs: Int?) async throws {
        let cache = try filled(300)
        var expected: [CacheFinding] = []
        let count = try await cache.audit.verify(jobs: 1) { expected.append($0) }
        #expect(expected.map(\.path) == expected.map(\.path).sorted())
        #expect(count == 300 && expected.count == 60 + 300 / 7 + 1 - 300 / 35 - 1)
        var found: [CacheFinding] = []
        #expect(try await cache.audit.verify(jobs: jobs) { found.append($0) } == count)
        #expect(found == expected)
        #expect(found.map(\.path) == found.map(\.path).sorted())
        var mended: [String] = []
        #expect(try await cache.audit.repair(jobs: jobs) { finding, _ in mended.append(finding.path) } == count)
        #expect(mended == expected.map(\.path))
        #expect(try await cache.audit.verify(jobs: jobs) { Issue.record("\($0)") } == 240)
        #expect(try cache.account.usage().count == 240)
    }

    @Test("The bytes are looked at by as many threads at once as there are to be")
    func concurrency() async throws {
        let cache = try filled(100)
        let inside = Locked((now: 0, most: 0))
        let all = BlockingLatch()
        let checked = try await cache.audit.verify(
            jobs: 3,
            check: { _ throws(WebImageError) in
                let isLast = inside.withLock { inside in
                    inside.now += 1
                    inside.most = max(inside.most, inside.now)
                    return inside.now == 3
                }
                if isLast { all.open() }
                // Nobody passes before three are here.
                all.wait()
                inside.withLock { $0.now -= 1 }
                return nil
            }, report: { _ in })
        #expect(checked == 100 && inside.withLock { $0.most } == 3)
    }

    @Test("What ends a check ends it for all threads; what came before in the order is told, nothing behind it")
    func failure() async throws {
        let cache = try filled(200)
        var all: [CacheFinding] = []
        _ = try await cache.audit.verify(jobs: 1) { all.append($0) }
        let culprit = CacheKey("101")
        var found: [CacheFinding] = []
        let error = await #expect(throws: WebImageError.self) {
            try await cache.audit.verify(
                jobs: 4,
                check: { entry throws(WebImageError) in
                    guard entry.key != culprit else { throw WebImageError(.localFault, "no memory") }
                    return nil
                }, report: { found.append($0) })
        }
        #expect(error?.message == "no memory")
        #expect(found == Array(all.prefix { $0.key.leaf < culprit.leaf }))
    }

    @Test("A cancelled check stops on all threads")
    func cancelled() async throws {
        let cache = try filled(100)
        let began = Latch()
        let entered = BlockingLatch()
        let task = Task {
            try await cache.audit.verify(
                jobs: 2,
                check: { _ throws(WebImageError) in
                    began.open()
                    entered.wait()
                    return nil
                }, report: { _ in })
        }
        await began.wait()
        task.cancel()
        entered.open()
        let error = await #expect(throws: WebImageError.self) { try await task.value }
        #expect(error?.code == .cancelled)
    }

    @Test("Beside writers a repair takes away nothing of what they store")
    func besideWriters() async throws {
        let cache = try DiskCache(directory: directory.path)
        let count = 200
        for index in 0..<count {
            let bytes = picture(index)
            try cache.images.store(ImageBody(bytes), for: CacheKey("\(index)"), record: record(bytes))
            damage(cache.images.path(of: CacheKey("\(index)")), length: 20)
        }
        let pool = ThreadPool(threads: 2, name: "writers")
        let storing = Task(executorPreference: pool) { [directory] in
            let other = try DiskCache(directory: directory.path)
            for index in 0..<count {
                try other.images.storeVerified(picture(index), forKey: "\(index)", level: .decode)
            }
        }
        for _ in 0..<5 { _ = try await cache.audit.repair(jobs: 4) { _, _ in } }
        try await storing.value
        for index in 0..<count {
            #expect(try cache.images.find(CacheKey("\(index)"))?.standing == .verified, "\(index)")
            #expect(try cache.find(forKey: "\(index)", atLeast: .none)?.bytes() == picture(index))
        }
        #expect(try await cache.audit.repair(jobs: 4) { finding, _ in Issue.record("\(finding)") } == count)
        #expect(try cache.account.usage().count == count)
    }
}
