import Threading

@testable import WebImage

/// A store whose look-ups block until they are let through.
final class GateStore: DiskImageStore {
    /// The images.
    let images = DictionaryStore()
    /// Opens for every look-up.
    let gate = BlockingLatch()
    /// The keys that were asked for.
    let asked = Locked<[String]>([])

    private func pass(_ key: String) {
        asked.withLock { $0.append(key) }
        gate.wait()
    }

    func contains(_ key: String) -> Bool {
        pass(key)
        return images.contains(key)
    }

    func image(forKey key: String) throws(WebImageError) -> StoredImage? {
        pass(key)
        return try images.image(forKey: key)
    }

    func store(_ image: StoredImage, forKey key: String) throws(WebImageError) { try images.store(image, forKey: key) }

    func describe(record: CacheRecord, validators: HTTPValidators?, forKey key: String) throws(WebImageError) {
        try images.describe(record: record, validators: validators, forKey: key)
    }

    func remove(forKey key: String) throws(WebImageError) { try images.remove(forKey: key) }
    func removeAll() throws(WebImageError) -> Int { try images.removeAll() }
    func removeExpired(olderThan age: Double?, beyond size: Int?) throws(WebImageError) -> SweepReport? {
        try images.removeExpired(olderThan: age, beyond: size)
    }
    func diskUsage() throws(WebImageError) -> (count: Int, size: Int) { try images.diskUsage() }
    func path(forKey key: String) -> String? { nil }
}
