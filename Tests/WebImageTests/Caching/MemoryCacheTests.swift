import Testing
import Threading

@testable import WebImage

@Suite("Memory cache", .timeLimit(.minutes(5)))
struct MemoryCacheTests {
    private func image(_ cost: Int, level: ValidationLevel = .decode) -> MemoryImage {
        MemoryImage(
            bytes: [UInt8](repeating: 7, count: cost), info: ImageInfo(format: .png, width: 1, height: 1, level: level),
            digest: nil)
    }

    private func keys(_ cache: MemoryCache, _ among: String) -> String {
        String(among.filter { cache.contains(String($0)) })
    }

    @Test("Over its count the one goes first that was not used for the longest time")
    func count() {
        let cache = MemoryCache(maxMemoryCountLimit: 3)
        for key in ["a", "b", "c"] { cache.insert(image(10), forKey: key) }
        #expect(cache.image(forKey: "a") == image(10))
        // No use.
        #expect(cache.contains("b"))
        cache.insert(image(11), forKey: "d")
        #expect(keys(cache, "abcd") == "acd")
        // Stored again is used again.
        cache.insert(image(12), forKey: "c")
        cache.insert(image(13), forKey: "e")
        #expect(keys(cache, "abcde") == "cde")
        #expect(cache.count == 3 && cache.totalCost == 36)
        #expect(cache.image(forKey: "a") == nil)
    }

    @Test("Over its cost as many go as have to; what alone is too large is not kept, nor what it replaces")
    func cost() {
        let cache = MemoryCache(maxMemoryCost: 100)
        for key in ["a", "b", "c"] { cache.insert(image(30), forKey: key) }
        cache.insert(image(70), forKey: "d")
        #expect(keys(cache, "abcd") == "cd")
        #expect(cache.totalCost == 100)
        cache.insert(image(101), forKey: "d")
        #expect(keys(cache, "abcd") == "c")
        cache.insert(image(100), forKey: "e")
        #expect(keys(cache, "abcde") == "e")
        cache.remove(forKey: "e")
        cache.remove(forKey: "e")
        #expect(cache.count == 0 && cache.totalCost == 0)
    }

    @Test("0 and less are no limit", arguments: [0, -1])
    func unlimited(limit: Int) {
        let cache = MemoryCache(maxMemoryCost: limit, maxMemoryCountLimit: limit)
        for index in 0..<1000 { cache.insert(image(1000), forKey: "\(index)") }
        #expect(cache.count == 1000 && cache.totalCost == 1_000_000)
        cache.removeAll()
        #expect(cache.count == 0 && cache.totalCost == 0)
        cache.insert(image(1), forKey: "a")
        #expect(cache.count == 1)
    }

    @Test("What was found elsewhere comes too late after a removal, and over what passed as much")
    func offers() {
        let cache = MemoryCache()
        let before = cache.removals
        cache.offer(image(1), forKey: "a", removals: before)
        #expect(cache.image(forKey: "a") == image(1))
        cache.offer(image(2), forKey: "a", removals: before)
        #expect(cache.image(forKey: "a") == image(1))
        cache.insert(image(3, level: .header), forKey: "a")
        cache.offer(image(4), forKey: "a", removals: before)
        #expect(cache.image(forKey: "a") == image(4))
        cache.remove(forKey: "a")
        cache.offer(image(5), forKey: "a", removals: before)
        #expect(cache.count == 0)
        let between = cache.removals
        cache.removeAll()
        cache.offer(image(6), forKey: "a", removals: between)
        #expect(cache.count == 0)
        cache.offer(image(7), forKey: "a", removals: cache.removals)
        #expect(cache.count == 1)
    }

    @Test("Anything that happens to it happens to a plain list too")
    func model() {
        let seed = UInt64.random(in: 0 ... .max)
        print("MemoryCacheTests seed \(seed)")
        var state = seed | 1
        func random(_ bound: Int) -> Int {
            state ^= state >> 12
            state ^= state << 25
            state ^= state >> 27
            return Int(((state &* 0x2545_F491_4F6C_DD1D) >> 33) % UInt64(bound))
        }
        let cache = MemoryCache(maxMemoryCost: 300, maxMemoryCountLimit: 12)
        // The newest last.
        var model: [(key: String, image: MemoryImage)] = []
        for step in 0..<30_000 {
            let key = "\(random(30))"
            let place = model.firstIndex { $0.key == key }
            switch random(10) {
            case 0..<5:
                let image = image(random(80))
                cache.insert(image, forKey: key)
                if let place { model.remove(at: place) }
                model.append((key, image))
                while model.count > 12 || model.reduce(0, { $0 + $1.image.cost }) > 300 { model.removeFirst() }
            case 5..<8:
                let found = cache.image(forKey: key)
                #expect(found == place.map { model[$0].image }, "seed \(seed) step \(step)")
                if let place { model.append(model.remove(at: place)) }
            case 8:
                cache.remove(forKey: key)
                if let place { model.remove(at: place) }
            default:
                guard random(50) == 0 else { continue }
                cache.removeAll()
                model = []
            }
            let isSame =
                cache.count == model.count && cache.totalCost == model.reduce(0) { $0 + $1.image.cost }
                && model.allSatisfy { cache.contains($0.key) }
            guard isSame else {
                Issue.record("seed \(seed) step \(step)")
                return
            }
        }
    }

    @Test("Many threads leave it whole")
    func threads() async {
        let cache = MemoryCache(maxMemoryCost: 500, maxMemoryCountLimit: 20)
        let pool = ThreadPool(threads: 4, name: "memory")
        await withTaskGroup(of: Void.self) { group in
            for worker in 0..<8 {
                group.addTask(executorPreference: pool) {
                    for step in 0..<3000 {
                        let key = "\((worker + step * 7) % 40)"
                        switch step % 5 {
                        case 0, 1: cache.insert(image(step % 60), forKey: key)
                        case 2: _ = cache.image(forKey: key)
                        case 3: cache.offer(image(step % 60), forKey: key, removals: cache.removals)
                        default: if step % 500 == 4 { cache.removeAll() } else { cache.remove(forKey: key) }
                        }
                    }
                }
            }
        }
        let kept = (0..<40).compactMap { cache.image(forKey: "\($0)") }
        #expect(kept.count == cache.count && kept.count <= 20)
        #expect(kept.reduce(0) { $0 + $1.cost } == cache.totalCost)
        #expect(cache.totalCost <= 500)
    }
}
