internal import Glibc
internal import Threading

/// The leaf directories a cache keeps open, so that a store does not open and close one: four calls and a walk along the path less for
/// each image.
///
/// As many as a quarter of the process' descriptors; the others are opened each time. A directory that is removed behind it is
/// found out by the store, which fails with ENOENT, forgets it and makes it anew.
final class LeafDirectories: Sendable {
    private struct State {
        var descriptors = [Int32](repeating: -1, count: CacheKey.leafCount)
        /// Forgotten ones, open as long as somebody may use them.
        var abandoned: [Int32] = []
        var room: Int
    }

    private let state: Locked<State>

    init() {
        var limit = rlimit()
        let isKnown = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
        state = Locked(State(room: isKnown ? Int(min(limit.rlim_cur / 4, rlim_t(CacheKey.leafCount))) : 0))
    }

    deinit {
        state.withLock { state in
            for descriptor in state.descriptors + state.abandoned where descriptor >= 0 { close(descriptor) }
        }
    }

    /// The one that is kept for a key. It stays open as long as this object, forgotten or not.
    func descriptor(_ key: CacheKey) -> Int32? {
        let descriptor = state.withLock { $0.descriptors[key.leafIndex] }
        return descriptor >= 0 ? descriptor : nil
    }

    /// Keeps a directory open where there is room, and hands it back.
    func keep(_ leaf: consuming OpenFile, _ key: CacheKey) -> Leaf {
        let descriptor = leaf.descriptor
        let isKept = state.withLock { state in
            guard state.room > 0, state.descriptors[key.leafIndex] < 0 else { return false }
            state.room -= 1
            state.descriptors[key.leafIndex] = descriptor
            return true
        }
        return isKept ? Leaf(kept: leaf.release()) : Leaf(own: leaf)
    }

    /// Keeps it no longer; false where none was kept. Another thread may be using it, so it is never closed before the cache.
    func forget(_ key: CacheKey) -> Bool {
        state.withLock { state in
            guard state.descriptors[key.leafIndex] >= 0 else { return false }
            state.abandoned.append(state.descriptors[key.leafIndex])
            state.descriptors[key.leafIndex] = -1
            return true
        }
    }
}

/// An open leaf directory: kept by its cache, or closed with this value.
struct Leaf: ~Copyable {
    let descriptor: Int32
    private let own: OpenFile?

    init(kept descriptor: Int32) {
        self.descriptor = descriptor
        own = nil
    }

    init(own file: consuming OpenFile) {
        descriptor = file.descriptor
        own = consume file
    }
}
