import Glibc
import TestSupport
import Testing
import Threading

@testable import WebImage

@Suite("Disk cache, cleared", .timeLimit(.minutes(5)))
struct CacheClearingTests {
    private let directory = TemporaryDirectory()

    private func cache(_ mode: CacheMode) throws -> DiskCache {
        try DiskCache(directory: directory.path, configuration: mode.configuration(durability: .none))
    }

    private func bytes(_ index: Int) -> [UInt8] { Array("picture \(index)".utf8) }

    /// As if nothing had changed for two minutes.
    private func age() {
        let then = timespec(tv_sec: time(nil) - 120, tv_nsec: 0)
        for name in directory.contents() where name.hasSuffix("/") {
            utimensat(AT_FDCWD, directory.path(name), [then, then], 0)
        }
    }

    @Test("Clearing leaves an empty cache with its lock files, and counts", arguments: CacheMode.allCases)
    func clearing(mode: CacheMode) throws {
        let cache = try cache(mode)
        _ = try TransferLock(cache)
        let empty = directory.contents()
        func fill() throws {
            for index in 0..<40 {
                try cache.images.store(ImageBody(bytes(index)), for: CacheKey("\(index)"), record: record(bytes(index)))
            }
        }
        try fill()
        let open = try #require(try cache.images.find(CacheKey("7")))
        #expect(try cache.images.removeAll() == 40)
        // Somebody could be about to use directories that are so young.
        #expect(directory.contents().filter { !$0.hasSuffix("/") } == empty.filter { !$0.hasSuffix("/") })
        #expect(try cache.audit.count().images == 0)
        // Whoever has one open keeps it.
        #expect(try open.bytes() == bytes(7))
        try fill()
        age()
        #expect(try cache.images.removeAll() == 40)
        #expect(directory.contents() == empty)
        #expect(try cache.images.removeAll() == 0)
        try fill()
        #expect(try cache.audit.count().images == 40)
    }

    @Test("What is no image of the cache stays: moved aside, on its way, or put there by somebody")
    func strangers() throws {
        let cache = try cache(.full)
        let key = CacheKey("a")
        try cache.images.store(ImageBody(bytes(1)), for: key, record: record(bytes(1)))
        try cache.images.store(ImageBody(bytes(2)), for: CacheKey("b"), record: record(bytes(2)))
        cache.images.moveAside(try #require(try cache.images.find(CacheKey("b"))))
        for name in ["\(key.leaf)/.t-1-abc", "v1/README", "v1/ff", ".prefetch/run.json"] {
            directory.write([1], to: name)
        }
        let moved = try #require(directory.contents().first { $0.hasPrefix("bad/") && $0 != "bad/" })
        age()
        #expect(try cache.images.removeAll() == 1)
        let left: Set = [
            "CACHEDIR.TAG", "v1/", "v1/README", "v1/ff", "\(key.path.prefix(4))/", "\(key.leaf)/",
            "\(key.leaf)/.t-1-abc", ".prefetch/", ".prefetch/account", ".prefetch/id", ".prefetch/locks/",
            ".prefetch/run.json",
            "bad/", moved,
        ]
        #expect(Set(directory.contents()) == left)
    }

    @Test("A symbolic link in the place of a folder is not followed")
    func links() throws {
        let cache = try cache(.full)
        let outside = TemporaryDirectory()
        let key = CacheKey("a")
        #expect(mkdir(outside.path("\(key.leaf.suffix(2))"), 0o777) == 0)
        outside.write([1], to: "\(key.leaf.suffix(2))/\(key.name)")
        let before = outside.contents()
        #expect(symlink(outside.path, directory.path(String(key.path.prefix(4)))) == 0)
        #expect(try cache.images.removeAll() == 0)
        #expect(outside.contents() == before)
    }

    @Test("Others that store meanwhile never fail and never leave a torn image", arguments: CacheMode.allCases)
    func beside(mode: CacheMode) async throws {
        // An instance shares nothing with another but the directory, as two processes would.
        let writers = try (0..<3).map { _ in try cache(mode) }
        let clearer = try cache(mode)
        let pool = ThreadPool(threads: 4, name: "clear")
        let removed = Locked(0)
        for round in 0..<(mode == .full ? 60 : 25) {
            // The directories of the rounds before are there, old and empty or not.
            age()
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask(executorPreference: pool) {
                    let count = try clearer.images.removeAll()
                    removed.withLock { $0 += count }
                }
                for (index, writer) in writers.enumerated() {
                    group.addTask(executorPreference: pool) {
                        for step in 0..<8 {
                            // Few keys, so that all meet in the same directories.
                            let number = (step + index * 3 + round) % 8
                            try writer.images.store(
                                ImageBody(bytes(number)), for: CacheKey("\(number)"), record: record(bytes(number)))
                            if let found = try writer.find(forKey: "\(number)", atLeast: .none)?.bytes() {
                                #expect(found == bytes(number))
                            }
                        }
                    }
                }
                try await group.waitForAll()
            }
        }
        #expect(removed.withLock { $0 } > 0)
        var damaged: [CacheFinding] = []
        _ = try await clearer.audit.verify { if $0.isDamaged { damaged.append($0) } }
        #expect(damaged == [])
        #expect(directory.contents().filter { $0.contains(".t-") || $0.hasPrefix("bad") } == [])
    }

    @Test("A clearing that is cancelled says so")
    func cancelled() async throws {
        let cache = try cache(.full)
        try cache.images.store(ImageBody(bytes(1)), for: CacheKey("1"), record: record(bytes(1)))
        let task = Task {
            while !Task.isCancelled { await Task.yield() }
            return try cache.images.removeAll()
        }
        task.cancel()
        let error = await #expect(throws: WebImageError.self) { try await task.value }
        #expect(error?.code == .cancelled)
        #expect(try cache.audit.count().images == 1)
    }
}
