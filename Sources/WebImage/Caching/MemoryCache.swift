internal import Threading

/// Verified images in memory (SDMemoryCache) with LRU eviction.
///
/// Thread-safe; every operation takes constant time.
public final class MemoryCache: Sendable {
    private struct State {
        var list = RecencyList()
        var removals = 0
    }

    /// Maximum bytes of all images; 0: no limit. A larger image is not kept.
    public let maxMemoryCost: Int
    /// Maximum number of images; 0: no limit.
    public let maxMemoryCountLimit: Int
    private let state = Locked(State())

    /// Creates an empty cache. Negative limits count as 0.
    public init(maxMemoryCost: Int = 0, maxMemoryCountLimit: Int = 0) {
        self.maxMemoryCost = max(0, maxMemoryCost)
        self.maxMemoryCountLimit = max(0, maxMemoryCountLimit)
    }

    /// Number of images.
    public var count: Int { state.withLock { $0.list.count } }

    /// Bytes of all images.
    public var totalCost: Int { state.withLock { $0.list.cost } }

    /// The image of a key; counts as a use.
    public func image(forKey key: String) -> MemoryImage? { state.withLock { $0.list.use(key) } }

    /// Whether there is an image; does not count as a use.
    public func contains(_ key: String) -> Bool { state.withLock { $0.list.peek(key) != nil } }

    /// Adds an image, replacing that of the key.
    public func insert(_ image: MemoryImage, forKey key: String) {
        state.withLock { insert(image, forKey: key, into: &$0.list) }
    }

    /// Removes an image.
    public func remove(forKey key: String) {
        state.withLock { state in
            state.removals += 1
            state.list.remove(key)
        }
    }

    /// Removes all images.
    public func removeAll() {
        state.withLock { state in
            state.removals += 1
            state.list = RecencyList()
        }
    }

    /// Incremented by every removal.
    var removals: Int { state.withLock { $0.removals } }

    func accepts(cost: Int) -> Bool { maxMemoryCost == 0 || cost <= maxMemoryCost }

    /// Adds an image that was found elsewhere some time ago: not if anything was removed meanwhile, because it may have been this one, and
    /// not over an image of at least the same level, which is newer.
    func offer(_ image: MemoryImage, forKey key: String, removals: Int) {
        state.withLock { state in
            guard state.removals == removals else { return }
            if let present = state.list.peek(key), present.info.level >= image.info.level { return }
            insert(image, forKey: key, into: &state.list)
        }
    }

    private func insert(_ image: MemoryImage, forKey key: String, into list: inout RecencyList) {
        guard accepts(cost: image.cost) else { return list.remove(key) }
        list.insert(image, forKey: key)
        while (maxMemoryCost > 0 && list.cost > maxMemoryCost)
            || (maxMemoryCountLimit > 0 && list.count > maxMemoryCountLimit)
        {
            list.removeOldest()
        }
    }
}
