import TestSupport
import Testing
import Threading

@testable import WebImage

@Suite("One transfer per image", .timeLimit(.minutes(5)))
struct TransferLockTests {
    private let directory = TemporaryDirectory()
    private let key = CacheKey("http://example.org/a")

    /// Locks belong to open file descriptions, so two instances exclude each other as two processes do.
    private func locks(_ count: Int) throws -> [TransferLock] {
        try (0..<count).map { _ in try TransferLock(try DiskCache(directory: directory.path)) }
    }

    @Test("Any number of tasks in several processes transfer one after the other")
    func exclusion() async throws {
        let locks = try locks(3)
        let inside = Locked(0)
        let done = Locked(0)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for index in 0..<60 {
                group.addTask {
                    try await locks[index % 3].withTransfer(of: key) { () async throws(WebImageError) in
                        #expect(
                            inside.withLock {
                                $0 += 1; return $0
                            } == 1)
                        await Task.yield()
                        inside.withLock { $0 -= 1 }
                        done.withLock { $0 += 1 }
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(done.withLock { $0 } == 60)
        #expect(locks.allSatisfy { $0.waiting(for: key) == 0 })
    }

    @Test("Other images are not held up, and 16 files hold all locks")
    func independence() async throws {
        let lock = try locks(1)[0]
        let result = try await lock.withTransfer(of: key) { () async throws(WebImageError) in
            try await lock.withTransfer(of: CacheKey("another")) { () async throws(WebImageError) in 42 }
        }
        #expect(result == 42)
        #expect(directory.contents().filter { $0.hasPrefix(".prefetch/locks/") && !$0.hasSuffix("/") }.count == 16)
    }

    @Test("In one process the order of arrival holds")
    func order() async throws {
        let lock = try locks(1)[0]
        let order = Locked<[Int]>([])
        try await withThrowingTaskGroup(of: Void.self) { group in
            try await lock.withTransfer(of: key) { () async throws(WebImageError) in
                for index in 0..<20 {
                    group.addTask {
                        try await lock.withTransfer(of: key) { () async throws(WebImageError) in
                            order.withLock { $0.append(index) }
                        }
                    }
                    while lock.waiting(for: key) != index + 1 { await Task.yield() }
                }
            }
            try await group.waitForAll()
        }
        #expect(order.withLock { $0 } == Array(0..<20))
    }

    @Test("A waiting task can be cancelled, behind this process and behind another", arguments: [0, 1])
    func cancellation(other: Int) async throws {
        let locks = try locks(2)
        try await locks[0].withTransfer(of: key) { () async throws(WebImageError) in
            let ran = Locked(false)
            let task = Task { [key] in
                try await locks[other].withTransfer(of: key) { () async throws(WebImageError) in
                    ran.withLock { $0 = true }
                }
            }
            while other == 0 && locks[0].waiting(for: key) == 0 { await Task.yield() }
            task.cancel()
            let error = await #expect(throws: WebImageError.self) { try await task.value }
            #expect(error?.code == .cancelled)
            #expect(ran.withLock { $0 } == false)
        }
        // Nothing was left taken.
        #expect(try await locks[other].withTransfer(of: key) { () async throws(WebImageError) in 1 } == 1)
        #expect(try await locks[1 - other].withTransfer(of: key) { () async throws(WebImageError) in 2 } == 2)
    }

    @Test("A failed transfer lets the next one pass")
    func failure() async throws {
        let locks = try locks(2)
        for lock in locks + locks {
            let error = await #expect(throws: WebImageError.self) {
                try await lock.withTransfer(of: key) { () async throws(WebImageError) -> Int in
                    throw WebImageError(.timedOut, "timed out")
                }
            }
            #expect(error?.code == .timedOut)
        }
    }

    @Test("A cache has a key for every URL, and a filter changes it")
    func imageCache() throws {
        let plain = try ImageCache(directory: directory.path)
        #expect(plain.key(for: "http://h/a?x=1") == "http://h/a?x=1")
        let filtered = try ImageCache(directory: directory.path) { url in
            url.hasPrefix("data:") ? nil : String(url.prefix { $0 != "?" })
        }
        #expect(filtered.key(for: "http://h/a?x=1") == "http://h/a")
        #expect(filtered.key(for: "data:?") == "data:?")
        #expect(filtered.cacheKey(for: "http://h/a?x=1") == plain.cacheKey(for: "http://h/a"))
    }

    @Test(
        "A process whose transfer lasts is waited for, however long that takes; one that sends no more heartbeats is not"
    )
    func heartbeats() async throws {
        let waitLimit = Duration.milliseconds(400)
        let (holder, other) = (
            try TransferLock(try DiskCache(directory: directory.path), waitLimit: waitLimit),
            try TransferLock(try DiskCache(directory: directory.path), waitLimit: waitLimit)
        )
        let first = try await holder.acquire(key)
        let second = Task { [key] in try await other.acquire(key) }
        try await until { other.waitingOnOtherProcesses != 0 }
        try await Task.sleep(for: waitLimit * 4)
        #expect(other.waitingOnOtherProcesses == 1)
        first.release()
        let taken = try await second.value
        // It is the holder now, and the first one waits for it as long as it lives.
        let third = Task { [key] in try await holder.acquire(key) }
        try await until { holder.waitingOnOtherProcesses != 0 }
        try await Task.sleep(for: waitLimit * 2)
        #expect(holder.waitingOnOtherProcesses == 1)
        // As one that is stopped, or whose download loop hangs.
        other.setHeartbeatsPaused(true)
        let began = ContinuousClock.now
        let without = try await third.value
        #expect(ContinuousClock.now - began < waitLimit * 20)
        without.release()
        taken.release()
        // Nothing is left of either, in either process.
        other.setHeartbeatsPaused(false)
        for lock in [holder, other] { try await lock.acquire(key).release() }
    }

    @Test("A process that hangs with its lock holds up the others for a while, not for ever")
    func waitLimit() async throws {
        let cache = try DiskCache(directory: directory.path)
        let key = CacheKey("http://h/a")
        let hanging = try await TransferLock(cache).acquire(key)
        let other = try TransferLock(try DiskCache(directory: directory.path), waitLimit: .milliseconds(50))
        let began = ContinuousClock.now
        let second = try await other.acquire(key)
        #expect(ContinuousClock.now - began >= .milliseconds(50))
        second.release()
        // Whoever went on without the lock has not taken it from its owner.
        let third = Task { try await TransferLock(try DiskCache(directory: directory.path)).acquire(key) }
        hanging.release()
        try await third.value.release()
    }
}

extension TransferLock {
    /// Runs `body` while nobody else transfers this image.
    fileprivate nonisolated(nonsending) func withTransfer<Result>(
        of key: CacheKey, _ body: nonisolated(nonsending) () async throws(WebImageError) -> Result
    ) async throws(WebImageError) -> Result {
        let transfer = try await acquire(key)
        defer { transfer.release() }
        return try await body()
    }
}
