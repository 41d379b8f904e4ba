import Glibc
import Origin
import TestSupport
import Testing
import Threading

@testable import WebImage

/// Gives a file dates so many seconds ago.
func age(_ path: String, accessed: Int? = nil, modified: Int? = nil) {
    var status = stat()
    #expect(lstat(path, &status) == 0)
    let now = time(nil)
    let times = [
        accessed.map { timespec(tv_sec: now - $0, tv_nsec: 0) } ?? status.st_atim,
        modified.map { timespec(tv_sec: now - $0, tv_nsec: 0) } ?? status.st_mtim,
    ]
    #expect(utimensat(AT_FDCWD, path, times, 0) == 0)
}

@Suite("Sweeping a cache", .timeLimit(.minutes(5)))
struct CacheSweepTests {
    private let directory = TemporaryDirectory()
    private let hour = 3600

    private func cache(_ type: DiskCache.ExpireType = .modificationDate, _ mode: CacheMode = .full) throws -> DiskCache
    {
        var configuration = mode.configuration(durability: .none)
        configuration.expireType = type
        return try DiskCache(directory: directory.path, configuration: configuration)
    }

    /// Two blocks each, the nth so many hours old.
    private func fill(_ cache: DiskCache, _ count: Int) throws {
        for index in 0..<count {
            let bytes = [UInt8](repeating: UInt8(index), count: 5000)
            try cache.images.store(ImageBody(bytes), for: CacheKey("\(index)"), record: record(bytes))
            age(cache.images.path(of: CacheKey("\(index)")), accessed: index * hour, modified: index * hour)
        }
    }

    private func left(_ cache: DiskCache, of count: Int) -> [Int] {
        (0..<count).filter { cache.existingPath(forKey: "\($0)") != nil }
    }

    @Test("What is too old goes first, then the oldest until it is less than half", arguments: CacheMode.allCases)
    func halving(mode: CacheMode) async throws {
        let disk = try cache(.modificationDate, mode)
        try fill(disk, 20)
        var configuration = ImageCache.Configuration()
        configuration.disk = disk.configuration
        #expect(configuration.maxDiskAge == 604_800 && configuration.maxDiskSize == 0)
        #expect(configuration.diskCacheExpireType == .modificationDate)
        configuration.maxDiskAge = Double(10 * hour) - 60
        configuration.maxDiskSize = 8 * 8192
        let images = try ImageCache(directory: directory.path, configuration: configuration)
        let report = try #require(try await images.deleteOldFiles())
        // Ten are left after the first pass, which is more than eight; half of eight is not yet less than half.
        #expect(report.expired == SweepReport.Sum(count: 10, size: 10 * 8192))
        #expect(report.evicted == SweepReport.Sum(count: 7, size: 7 * 8192))
        #expect(report.remaining == SweepReport.Sum(count: 3, size: 3 * 8192))
        #expect(left(disk, of: 20) == [0, 1, 2])
        #expect(try await images.totalDiskCount() == 3)
        #expect(directory.contents().filter { $0.hasSuffix(".m") }.count == (mode.hasSidecars ? 3 : 0))
        // Within the limit nothing goes.
        #expect(try await images.deleteOldFiles()?.remaining.count == 3)
    }

    @Test("Below 0 nothing is old, and 0 is everything")
    func noAge() async throws {
        let disk = try cache()
        try fill(disk, 3)
        var configuration = ImageCache.Configuration()
        configuration.maxDiskAge = -1
        age(disk.images.path(of: CacheKey("2")), modified: 100_000_000)
        let never = try ImageCache(directory: directory.path, configuration: configuration)
        #expect(try await never.deleteOldFiles()?.remaining.count == 3)
        configuration.maxDiskAge = 0
        let always = try ImageCache(directory: directory.path, configuration: configuration)
        #expect(try await always.deleteOldFiles()?.expired.count == 3)
    }

    @Test(
        "The date that was chosen decides",
        arguments: [
            (DiskCache.ExpireType.accessDate, ["modified"]), (.modificationDate, ["accessed"]),
            (.creationDate, ["accessed", "modified"]), (.changeDate, ["accessed", "modified"]),
        ])
    func dates(type: DiskCache.ExpireType, stay: [String]) throws {
        let cache = try cache(type)
        for name in ["accessed", "modified"] {
            try cache.images.store(ImageBody([1]), for: CacheKey(name), record: record([1]))
        }
        age(cache.images.path(of: CacheKey("accessed")), accessed: 2 * hour)
        age(cache.images.path(of: CacheKey("modified")), modified: 2 * hour)
        #expect(try cache.sweep.run(SweepRules(maxAge: Double(hour))) != nil)
        #expect(["accessed", "modified"].filter { cache.existingPath(forKey: $0) != nil } == stay)
    }

    @Test("A lookup sets an access date older than an hour, where that date counts; asking sets none")
    func access() throws {
        let cache = try cache(.accessDate)
        try cache.images.store(ImageBody([1]), for: CacheKey("a"), record: record([1]))
        let path = cache.images.path(of: CacheKey("a"))
        func accessed() -> Int {
            var status = stat()
            return stat(path, &status) == 0 ? time(nil) - status.st_atim.tv_sec : -1
        }
        // Younger than what relatime itself would set anew, a day, and than the modification date.
        age(path, accessed: 2 * hour, modified: 3 * hour)
        #expect(cache.existingPath(forKey: "a") != nil && accessed() >= 2 * hour)
        _ = try #require(try cache.images.find(CacheKey("a")))
        #expect((0..<60).contains(accessed()))
        age(path, accessed: hour / 2, modified: 3 * hour)
        _ = try #require(try cache.images.find(CacheKey("a")))
        #expect(accessed() >= hour / 2)
        age(path, accessed: 2 * hour, modified: 3 * hour)
        _ = try self.cache().images.find(CacheKey("a"))
        #expect(accessed() >= 2 * hour)
    }

    @Test("What was fetched since a protected moment stays; what the dead protected goes")
    func protection() throws {
        let cache = try cache()
        try fill(cache, 6)
        // Of somebody who died without a lock.
        mkdir(directory.path(".prefetch/busy"), 0o777)
        directory.write([1, 0, 0, 0, 0, 0, 0, 0], to: ".prefetch/busy/1-dead")
        var protection: CacheProtection? = try CacheProtection(cache)
        try protection?.set(since: Double(time(nil)) - 100)
        let spared = try #require(try cache.sweep.run(SweepRules(maxAge: 0)))
        #expect(spared.spared.count == 6 && spared.remaining.count == 6 && spared.expired.count == 0)
        #expect(directory.contents().filter { $0.hasPrefix(".prefetch/busy/") }.count == 2)
        let bySize = try #require(try cache.sweep.run(SweepRules(maxSize: 8192)))
        #expect(bySize.spared.count == 6 && bySize.evicted.count == 0)
        try protection?.set(since: nil)
        #expect(try cache.sweep.run(SweepRules(maxAge: Double(4 * hour)))?.expired.count == 2)
        try protection?.set(since: Double(time(nil)) - 100)
        protection = nil
        #expect(try cache.sweep.run(SweepRules(maxAge: 0))?.expired.count == 4)
        #expect(directory.contents().filter { $0.hasPrefix(".prefetch/busy/") } == [".prefetch/busy/"])
    }

    @Test("What a running batch found stays as what it fetched does; where that is not marked, everything stays")
    func found() throws {
        let (worker, sweeper) = (try cache(), try cache())
        try fill(worker, 3)
        func changed(_ index: Int) -> Double {
            var status = stat()
            #expect(stat(worker.images.path(of: CacheKey("\(index)")), &status) == 0)
            return Double(status.st_ctim.tv_sec) + Double(status.st_ctim.tv_nsec) / 1e9
        }
        let protection = try CacheProtection(worker)
        let since = (0..<3).map(changed).max()! + 0.001
        #expect(!worker.sweep.hasSwept)
        try protection.set(since: since + 1000, marksFound: false)
        let all = try #require(try sweeper.sweep.run(SweepRules(maxAge: 0)))
        #expect(all.spared.count == 3 && all.remaining.count == 3)
        #expect(worker.sweep.hasSwept)

        try protection.set(since: since)
        let first = changed(1)
        #expect(try worker.find(forKey: "1") != nil)
        #expect(changed(1) == first)
        worker.images.markFound(since: since)
        // File systems keep time in ticks of the kernel.
        repeat { #expect(try worker.find(forKey: "1") != nil) } while changed(1) < since
        let marked = changed(1)
        #expect(try worker.find(forKey: "1") != nil)
        #expect(changed(1) == marked)
        worker.images.markFound(since: nil)
        #expect(try worker.find(forKey: "2") != nil)
        let report = try #require(try sweeper.sweep.run(SweepRules(maxAge: 0)))
        #expect(report.spared.count == 1 && report.expired.count == 2)
        #expect(left(worker, of: 3) == [1])
        withExtendedLifetime(protection) {}
    }

    @Test("Only what came before a batch goes, however old its dates say it is")
    func sinceAMoment() throws {
        let cache = try cache()
        try cache.images.store(ImageBody([1]), for: CacheKey("before"), record: record([1]))
        var status = stat()
        #expect(stat(cache.images.path(of: CacheKey("before")), &status) == 0)
        let stored = Double(status.st_ctim.tv_sec) + Double(status.st_ctim.tv_nsec) / 1e9
        let protection = try CacheProtection(cache)
        try protection.set(since: stored + 0.001)
        // File systems keep time in ticks of the kernel.
        repeat {
            try cache.images.remove(CacheKey("after"))
            try cache.images.store(ImageBody([2]), for: CacheKey("after"), record: record([2]))
            #expect(stat(cache.images.path(of: CacheKey("after")), &status) == 0)
        } while Double(status.st_ctim.tv_sec) + Double(status.st_ctim.tv_nsec) / 1e9 <= stored + 0.002
        age(cache.images.path(of: CacheKey("after")), accessed: 9 * hour, modified: 9 * hour)
        let report = try #require(try cache.sweep.run(SweepRules(maxAge: 0)))
        #expect(report.expired.count == 1 && report.spared.count == 1)
        #expect(cache.existingPath(forKey: "before") == nil && cache.existingPath(forKey: "after") != nil)
        withExtendedLifetime(protection) {}
    }

    @Test("A reader goes on reading what went")
    func reader() throws {
        let cache = try cache()
        try fill(cache, 1)
        let entry = try #require(try cache.images.find(CacheKey("0")))
        #expect(try cache.sweep.run(SweepRules(maxAge: 0))?.expired.count == 1)
        #expect(try entry.bytes() == [UInt8](repeating: 0, count: 5000))
        #expect(try cache.images.find(CacheKey("0")) == nil)
    }

    @Test("One sweep at a time: who comes second returns at once")
    func single() throws {
        let cache = try cache()
        try fill(cache, 2)
        let other = try self.cache()
        var second: SweepReport?
        let first = try cache.sweep.run(SweepRules(maxAge: 0)) { _ in
            second = try? other.sweep.run(SweepRules(maxAge: 0))
        }
        #expect(first?.expired.count == 2 && second == nil)
        #expect(try other.sweep.run(SweepRules(maxAge: 0)) != nil)
    }

    @Test("What was replaced, or is being transferred, between the check and the removal stays")
    func changed() async throws {
        let cache = try cache()
        try fill(cache, 3)
        let new = Array("a new picture".utf8)
        let transfers = try TransferLock(cache)
        let transfer = try await transfers.acquire(CacheKey("2"))
        let report = try #require(
            try cache.sweep.run(SweepRules(maxAge: 0)) { image in
                guard image.path == cache.images.path(of: CacheKey("1")) else { return }
                _ = try? cache.images.store(ImageBody(new), for: CacheKey("1"), record: record(new), replacing: true)
            })
        transfer.release()
        #expect(report.expired.count == 1 && report.spared.count == 2)
        #expect(try cache.find(forKey: "1", atLeast: .none)?.bytes() == new)
        #expect(left(cache, of: 3) == [1, 2])
        #expect(try cache.account.usage().count == 2)
    }

    @Test("A link in a leaf is neither followed nor counted nor removed; a leaf that is one is passed over")
    func links() throws {
        let cache = try cache()
        try fill(cache, 2)
        directory.write([9], to: "outside")
        let path = cache.images.path(of: CacheKey("0"))
        #expect(unlink(path) == 0 && symlink(directory.path("outside"), path) == 0)
        let report = try #require(try cache.sweep.run(SweepRules(maxAge: 0)))
        #expect(report.expired.count == 1 && report.remaining.count == 0)
        #expect(directory.read("outside") == [9])
        var status = stat()
        #expect(lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK)
        let leaf = directory.path(CacheKey("0").leaf)
        #expect(rename(leaf, directory.path("moved")) == 0 && symlink(directory.path("moved"), leaf) == 0)
        let moved = directory.contents().filter { $0.hasPrefix("moved/") }
        #expect(try cache.sweep.run(SweepRules(maxAge: 0))?.remaining.count == 0)
        #expect(directory.contents().filter { $0.hasPrefix("moved/") } == moved)
    }

    /// Dates with many ties, sizes of several blocks, some images newer than any: as sorted by hand.
    @Test("For its size a sweep removes exactly the oldest, and of one age the first by name", arguments: 0..<12)
    func exactness(round: Int) throws {
        let seed = UInt64.random(in: 0 ... .max)
        print("seed of round \(round): \(seed)")
        var random = SplitMix64(state: seed)
        let cache = try cache()
        let count = Int.random(in: 1...150, using: &random)
        let ages = Int.random(in: 1...(round.isMultiple(of: 3) ? 2 : 60), using: &random)
        struct Image {
            var name: String
            var path: String
            var age: Int
            var size: Int
        }
        var images: [Image] = []
        let now = time(nil)
        for index in 0..<count {
            let bytes = [UInt8](repeating: 1, count: Int.random(in: 1...30_000, using: &random))
            let name = "\(index)"
            try cache.images.store(ImageBody(bytes), for: CacheKey(name), record: record(bytes))
            let image = Image(
                name: name, path: cache.images.path(of: CacheKey(name)),
                age: 100 * Int.random(in: 1...ages, using: &random),
                size: (bytes.count + 4095) / 4096 * 4096)
            // The very same date for one age, also where a second passes meanwhile.
            let date = timespec(tv_sec: now - image.age, tv_nsec: 7)
            #expect(utimensat(AT_FDCWD, image.path, [date, date], 0) == 0)
            images.append(image)
        }
        images.sort { ($1.age, $0.path) < ($0.age, $1.path) }
        let total = images.reduce(0) { $0 + $1.size }
        let maxSize = Int.random(in: 0...total, using: &random)
        let target = Int.random(in: 0...maxSize, using: &random)
        var (left, gone) = (total, 0)
        while total > maxSize, left > target {
            left -= images[gone].size
            gone += 1
        }
        var visited: [String] = []
        let report = try #require(
            try cache.sweep.run(SweepRules(maxSize: maxSize, targetSize: target)) { visited.append($0.path) })
        #expect(Set(visited) == Set(images.prefix(gone).map(\.path)) && visited.count == gone)
        #expect(images.filter { cache.existingPath(forKey: $0.name) == nil }.count == gone)
        #expect(images.prefix(gone).allSatisfy { cache.existingPath(forKey: $0.name) == nil })
        #expect(report.evicted == SweepReport.Sum(count: gone, size: total - left))
        #expect(report.remaining == SweepReport.Sum(count: count - gone, size: left))
        #expect(report.spared.count == 0)
    }

    @Test("What others remove while a sweep goes on is not removed twice over")
    func othersRemove() throws {
        let cache = try cache()
        try fill(cache, 40)
        var first = true
        // 30 have to go; another removes 15 of them at the first of these.
        let report = try #require(
            try cache.sweep.run(SweepRules(maxSize: 10 * 8192)) { _ in
                guard first else { return }
                first = false
                for index in 20..<35 { _ = try? cache.images.remove(CacheKey("\(index)")) }
            })
        #expect(left(cache, of: 40) == Array(0..<10))
        #expect(try cache.account.usage().count == 10)
        #expect(report.evicted.count == 15 && report.spared.count == 0)
    }

    @Test("A dry run says the same and changes nothing, also while another sweeps")
    func dryRun() throws {
        let cache = try cache()
        try fill(cache, 10)
        let before = directory.contents()
        var rules = SweepRules(maxAge: Double(8 * hour) - 60, maxSize: 5 * 8192)
        rules.removesLeftovers = true
        rules.isDryRun = true
        var seen: [String] = []
        let dry = try #require(try cache.sweep.run(rules) { seen.append($0.path) })
        #expect(directory.contents() == before)
        rules.isDryRun = false
        var during: SweepReport?
        var gone: [String] = []
        let real = try cache.sweep.run(rules) { image in
            if gone.isEmpty { during = try? cache.sweep.run(SweepRules(maxAge: 0), isOver: { false }) }
            gone.append(image.path)
        }
        #expect(real == dry && seen == gone && during == nil)
        #expect(dry.expired.count == 2 && dry.evicted.count == 3 && dry.remaining.count == 5)
    }

    @Test("Temporary files of the dead and what was moved aside long ago go too")
    func litter() throws {
        let cache = try cache()
        try fill(cache, 2)
        let leaf = CacheKey("0").leaf
        directory.write([1], to: "\(leaf)/.t-1-old")
        directory.write([1], to: "\(leaf)/.t-1-new")
        age(directory.path("\(leaf)/.t-1-old"), modified: 2 * hour)
        cache.images.moveAside(try #require(try cache.images.find(CacheKey("1"))))
        var rules = SweepRules(maxAge: Double(100 * hour))
        rules.removesLeftovers = true
        let young = try #require(try cache.sweep.run(rules))
        #expect(young.temporaryFiles == 1 && young.movedAside == 0 && young.expired.count == 0)
        rules.maxAge = 0
        #expect(try cache.sweep.run(rules)?.movedAside == 1)
        #expect(
            directory.contents().filter { $0.contains(".t-") || $0.hasPrefix("bad/") } == ["bad/", "\(leaf)/.t-1-new"])
    }

    @Test("A sweep that is ended says so, and the account is right")
    func ended() throws {
        let cache = try cache()
        try fill(cache, 10)
        var count = 0
        let error = #expect(throws: WebImageError.self) {
            try cache.sweep.run(SweepRules(maxAge: 0), visit: { _ in count += 1 }, isOver: { count == 4 })
        }
        #expect(error?.code == .cancelled)
        #expect(try cache.account.usage().count == 6 && cache.audit.count().images == 6)
    }

    @Test("While anybody fetches, a sweep keeps to its rate")
    func rate() throws {
        let cache = try cache()
        try fill(cache, 30)
        let protection = try CacheProtection(cache)
        try protection.set(since: Double(time(nil)) + 1000)
        var rules = SweepRules(maxAge: 0)
        rules.rate = 100
        let began = ContinuousClock.now
        #expect(try cache.sweep.run(rules)?.expired.count == 30)
        #expect(ContinuousClock.now - began >= .milliseconds(290))
        withExtendedLifetime(protection) {}
    }
}
