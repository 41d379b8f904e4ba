import TestSupport
import Testing
import Threading

@testable import WebImage

@Suite("Disk cache, many writers", .timeLimit(.minutes(5)))
struct DiskCacheConcurrencyTests {
    @Test("Two processes that publish one key at the same instant leave one whole file", arguments: CacheMode.allCases)
    func race(mode: CacheMode) async throws {
        let directory = TemporaryDirectory()
        let rounds = mode == .full ? 1000 : 250
        // An instance shares nothing with another but the directory, as two processes would.
        let writers = try (0..<3).map { _ in
            try DiskCache(directory: directory.path, configuration: mode.configuration(durability: .none))
        }
        let pool = ThreadPool(threads: 4, name: "writers")
        let stored = Locked(0)
        for round in 0..<rounds {
            let key = CacheKey("\(round)")
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (index, cache) in writers.enumerated() {
                    group.addTask(executorPreference: pool) {
                        // Different bytes of one length: only a record that belongs to its file fits the digest.
                        let bytes = [UInt8](repeating: UInt8(index), count: 2000)
                        if try cache.images.store(ImageBody(bytes), for: key, record: record(bytes)) == .stored {
                            stored.withLock { $0 += 1 }
                        }
                    }
                }
                group.addTask(executorPreference: pool) {
                    // A reader sees nothing or a whole file, at any time.
                    guard let entry = try writers[0].images.find(key) else { return }
                    #expect(try entry.record?.digest == entry.digest())
                }
                try await group.waitForAll()
            }
        }
        #expect(stored.withLock { $0 } == rounds)
        var findings: [CacheFinding] = []
        #expect(try await writers[1].audit.verify(atLeast: .decode, report: { findings.append($0) }) == rounds)
        #expect(findings == [])
        #expect(directory.contents().filter { $0.contains(".t-") || $0.hasPrefix("bad") } == [])
    }
}
