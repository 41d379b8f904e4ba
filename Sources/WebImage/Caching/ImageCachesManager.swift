internal import Threading

/// Several image caches as one (SDImageCachesManager): an application's own before one that comes with it, a fast disk before a large one.
///
/// The cache that was added last has the highest priority. Each operation has its policy, which says which caches it is for and in which
/// order; what is found in one cache is not copied into another.
///
/// An ``ImageManager`` uses it in place of one cache as the `diskStore` of its ``ImageCache``, which then has the memory, the keys and the
/// locks, so that nothing of the manager differs:
///
///     var configuration = ImageCache.Configuration()
///     configuration.diskStore = ImageCachesManager([bundled, own])
///     let manager = try ImageManager(cache: ImageCache(directory: directory, configuration: configuration))
///
/// For directories that are only looked up ``DiskCache/Configuration/readOnlyDirectories`` is the better means, which workers and the
/// commands have too: one cache, one memory, and behind it directories in which nothing is ever changed, asked in their order and on the same
/// thread. Here every cache is a whole one, with a memory, a store and limits of its own, and is written, removed and cleared as the policies say.
public final class ImageCachesManager: Sendable {
    /// For which caches an operation is (SDImageCachesManagerOperationPolicy).
    public enum OperationPolicy: String, Sendable, CaseIterable {
        /// For all, one after the other from the highest priority to the lowest; a question ends with the first cache that has the image.
        case serial
        /// For all at once; a question ends with the cache that answers first that it has the image. Memory is asked before any disk, from
        /// the highest priority to the lowest.
        case concurrent
        /// For the one with the highest priority.
        case highestOnly
        /// For the one with the lowest priority.
        case lowestOnly
    }

    /// The policies, with SDWebImage's defaults.
    public struct Configuration: Sendable {
        /// Of looking for an image; `serial` by default.
        public var queryOperationPolicy = OperationPolicy.serial
        /// Of storing one; `highestOnly` by default.
        public var storeOperationPolicy = OperationPolicy.highestOnly
        /// Of removing one; `concurrent` by default.
        public var removeOperationPolicy = OperationPolicy.concurrent
        /// Of asking where one is; `serial` by default.
        public var containsOperationPolicy = OperationPolicy.serial
        /// Of removing all; `concurrent` by default.
        public var clearOperationPolicy = OperationPolicy.concurrent

        /// The defaults.
        public init() {}

        /// One policy for every operation.
        public init(all policy: OperationPolicy) {
            queryOperationPolicy = policy
            storeOperationPolicy = policy
            removeOperationPolicy = policy
            containsOperationPolicy = policy
            clearOperationPolicy = policy
        }
    }

    /// The policies.
    public let configuration: Configuration
    private let list: Locked<[ImageCache]>

    /// A manager of some caches; without any nothing is found and nothing kept.
    ///
    /// * `caches`: from the lowest priority to the highest.
    public init(_ caches: [ImageCache] = [], configuration: Configuration = Configuration()) {
        list = Locked(caches)
        self.configuration = configuration
    }

    /// The caches, from the lowest priority to the highest. An operation is for those that are there when it begins.
    public var caches: [ImageCache] {
        get { list.withLock { $0 } }
        set { list.withLock { $0 = newValue } }
    }

    /// Adds a cache, with the highest priority.
    public func addCache(_ cache: ImageCache) { list.withLock { $0.append(cache) } }

    /// Takes a cache out; its images stay in it.
    public func removeCache(_ cache: ImageCache) { list.withLock { $0.removeAll { $0 === cache } } }

    /// For which caches an operation is, the highest priority first.
    func caches(for policy: OperationPolicy) -> [ImageCache] {
        let caches = Array(caches.reversed())
        switch policy {
        case .serial, .concurrent: return caches
        case .highestOnly: return Array(caches.prefix(1))
        case .lowestOnly: return Array(caches.suffix(1))
        }
    }

    /// The first answer that is one. A cache at fault counts as one that has not the image; where no other has it, that is not known, and its fault is
    /// thrown.
    func first<Answer: Sendable>(
        _ policy: OperationPolicy,
        _ ask: @escaping @Sendable (ImageCache) async throws(WebImageError) -> Answer?
    ) async throws(WebImageError) -> Answer? {
        let caches = caches(for: policy)
        if policy == .concurrent, caches.count > 1 { return try await fastest(caches, ask) }
        var fault: WebImageError?
        for cache in caches {
            if Task.isCancelled { throw Self.cancelled }
            do throws(WebImageError) {
                if let answer = try await ask(cache) { return answer }
            } catch {
                if error.code == .cancelled { throw error }
                fault = fault ?? error
            }
        }
        if let fault { throw fault }
        return nil
    }

    /// Tasks of their own and no task group, which would wait for the slow ones too.
    private func fastest<Answer: Sendable>(
        _ caches: [ImageCache], _ ask: @escaping @Sendable (ImageCache) async throws(WebImageError) -> Answer?
    ) async throws(WebImageError) -> Answer? {
        if Task.isCancelled { throw Self.cancelled }
        let (answers, continuation) = AsyncStream.makeStream(of: Result<Answer?, WebImageError>.self)
        let tasks = caches.map { cache in
            Task {
                do throws(WebImageError) {
                    continuation.yield(.success(try await ask(cache)))
                } catch {
                    continuation.yield(.failure(error))
                }
            }
        }
        defer { for task in tasks { task.cancel() } }
        var fault: WebImageError?
        var pending = caches.count
        for await answer in answers {
            switch answer {
            case .success(let answer?): return answer
            case .success(nil): break
            case .failure(let error): fault = fault ?? error
            }
            pending -= 1
            if pending == 0 { break }
        }
        // The stream ends early for a task that is cancelled.
        if pending > 0 { throw Self.cancelled }
        if let fault { throw fault }
        return nil
    }

    /// Does something to each cache, whatever happens to the others.
    /// - Throws: the fault of the highest priority, when all have been done.
    func each<Answer: Sendable>(
        _ policy: OperationPolicy, _ act: @escaping @Sendable (ImageCache) async throws(WebImageError) -> Answer
    ) async throws(WebImageError) -> [Answer] {
        let caches = caches(for: policy)
        let act = { @Sendable (cache: ImageCache) async -> Result<Answer, WebImageError> in
            do throws(WebImageError) { return .success(try await act(cache)) } catch { return .failure(error) }
        }
        var results: [Int: Result<Answer, WebImageError>] = [:]
        if policy == .concurrent {
            await withTaskGroup(of: (Int, Result<Answer, WebImageError>).self) { group in
                for (index, cache) in caches.enumerated() { group.addTask { (index, await act(cache)) } }
                for await (index, result) in group { results[index] = result }
            }
        } else {
            for (index, cache) in caches.enumerated() { results[index] = await act(cache) }
        }
        var answers: [Answer] = []
        for index in caches.indices { if let result = results[index] { answers.append(try result.get()) } }
        return answers
    }

    private static var cancelled: WebImageError { WebImageError(.cancelled, "the query was cancelled") }
}
