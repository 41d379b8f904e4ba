internal import Threading

/// Verified images in memory (SDMemoryCache): beyond a limit, the one that was not used for the longest time goes first.
///
/// Safe to use from any thread; every operation takes constant time. With a store of somebody else's, that decides.
public final class MemoryCache: Sendable {
    private struct State {
        var list = RecencyList()
        var removals = 0
    }

    /// Bytes of all images together; 0: no limit. A larger image is not kept at all.
    public let maxMemoryCost: Int
    /// How many images; 0: no limit.
    public let maxMemoryCountLimit: Int
    private let state = Locked(State())
    private let store: (any MemoryImageStore)?

    /// An empty cache. Numbers below 0 count as 0.
    public init(maxMemoryCost: Int = 0, maxMemoryCountLimit: Int = 0) {
        self.maxMemoryCost = max(0, maxMemoryCost)
        self.maxMemoryCountLimit = max(0, maxMemoryCountLimit)
        store = nil
    }

    /// A cache over a store of somebody else's, which has its own limits.
    public init(_ store: any MemoryImageStore) {
        self.store = store
        (maxMemoryCost, maxMemoryCountLimit) = (0, 0)
    }

    /// How many images there are.
    public var count: Int { store?.count ?? state.withLock { $0.list.count } }

    /// Bytes of all images together.
    public var totalCost: Int { store?.totalCost ?? state.withLock { $0.list.cost } }

    /// The image of a key, which counts as a use.
    public func image(forKey key: String) -> MemoryImage? {
        if let store { return store.image(forKey: key) }
        return state.withLock { $0.list.use(key) }
    }

    /// Whether there is an image, which is no use of it.
    public func contains(_ key: String) -> Bool {
        if let store { return store.image(forKey: key) != nil }
        return state.withLock { $0.list.peek(key) != nil }
    }

    /// Puts an image in, in place of the one under its key.
    public func insert(_ image: MemoryImage, forKey key: String) {
        if let store { return store.insert(image, forKey: key) }
        state.withLock { insert(image, forKey: key, into: &$0.list) }
    }

    /// Takes an image out.
    public func remove(forKey key: String) {
        state.withLock { state in
            state.removals += 1
            state.list.remove(key)
        }
        store?.remove(forKey: key)
    }

    /// Takes all out.
    public func removeAll() {
        state.withLock { state in
            state.removals += 1
            state.list = RecencyList()
        }
        store?.removeAll()
    }

    /// A number that changes with every removal that was asked for.
    var removals: Int { state.withLock { $0.removals } }

    /// Whether an image of that many bytes can be kept.
    func accepts(cost: Int) -> Bool { maxMemoryCost == 0 || cost <= maxMemoryCost }

    /// Puts in what somebody found elsewhere, which took a while: not where anything was removed meanwhile, since it may have been just
    /// this; and not over an image that passed as much, since that is newer.
    func offer(_ image: MemoryImage, forKey key: String, removals: Int) {
        if let store { return offer(image, forKey: key, removals: removals, to: store) }
        state.withLock { state in
            guard state.removals == removals else { return }
            if let present = state.list.peek(key), present.info.level >= image.info.level { return }
            insert(image, forKey: key, into: &state.list)
        }
    }

    /// No lock is held while the store works, so what is removed meanwhile is taken out again.
    private func offer(
        _ image: MemoryImage, forKey key: String, removals: Int, to store: any MemoryImageStore
    ) {
        guard self.removals == removals else { return }
        if let present = store.image(forKey: key), present.info.level >= image.info.level { return }
        store.insert(image, forKey: key)
        if self.removals != removals { store.remove(forKey: key) }
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
