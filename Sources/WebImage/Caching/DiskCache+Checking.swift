internal import Glibc
internal import Threading

// The check and the repair of a cache on several threads. Each takes a leaf directory at a time, of which there are 256 of about one size.
extension DiskCache {
    /// Reads every image as ``verify(atLeast:check:report:)`` does, on several threads.
    /// - Parameters:
    ///   - level: what each image should have passed.
    ///   - jobs: how many threads; nil: one for each processor.
    ///   - check: looks at the bytes as an image, on one of the threads, and says what is wrong with them.
    ///   - report: hears of each finding in the order of the keys, whatever the number of threads, when its directory and those before it
    ///     have been looked at.
    /// - Returns: how many files were looked at.
    /// - Throws: `localFault` where the cache itself cannot be read; `cancelled` where the task is.
    public nonisolated(nonsending) func verify(
        atLeast level: ValidationLevel = .none, jobs: Int?,
        check: @escaping @Sendable (CacheEntry) throws(WebImageError) -> String? = { _ throws(WebImageError) in nil },
        report: (CacheFinding) -> Void
    ) async throws(WebImageError) -> Int {
        var checked = 0
        try await forEachLeaf(jobs: jobs) { [self] leaf throws(WebImageError) in
            var findings: [CacheFinding] = []
            let count = try verify(leaf: leaf, atLeast: level, check: check) { finding, _ in findings.append(finding) }
            return (count, findings)
        } take: { (count: Int, findings: [CacheFinding]) in
            checked += count
            findings.forEach(report)
        }
        return checked
    }

    /// Reads and mends as ``repair(atLeast:coder:check:report:)`` does, on several threads. What is found fault with is dealt with at once by the
    /// thread that found it, so that little can change in between; a file that did is left.
    /// - Parameters:
    ///   - level: what each image should have passed.
    ///   - jobs: how many threads; nil: one for each processor.
    ///   - coder: looks at images without a record.
    ///   - check: looks at the bytes of every image, on one of the threads, and says what is wrong with them.
    ///   - report: hears of each finding and of what became of the file, in the order of the keys.
    /// - Returns: how many files were looked at.
    /// - Throws: `localFault` where the cache itself cannot be read or written; `cancelled` where the task is.
    public nonisolated(nonsending) func repair(
        atLeast level: ValidationLevel = .none, jobs: Int?, coder: ImageCoder = ImageCoder(),
        check: @escaping @Sendable (CacheEntry) throws(WebImageError) -> String? = { _ throws(WebImageError) in nil },
        report: (CacheFinding, Repair) -> Void
    ) async throws(WebImageError) -> Int {
        guard !configuration.isReadOnly else { throw fault("repair", code: EROFS) }
        var checked = 0
        try await forEachLeaf(jobs: jobs) { [self] leaf throws(WebImageError) in
            var mendings: [(CacheFinding, Repair)] = []
            let count = try verify(leaf: leaf, atLeast: level, check: check) { finding, entry throws(WebImageError) in
                mendings.append(try mended(finding, entry, level: level, coder))
            }
            return (count, mendings)
        } take: { (count: Int, mendings: [(CacheFinding, Repair)]) in
            checked += count
            for (finding, repair) in mendings { report(finding, repair) }
        }
        // What others did to its files by hand is in no account.
        try recount()
        return checked
    }

    /// Works on the leaf directories, several at a time, and hands on what came of each in their order. Those that wait for an earlier one
    /// are never more than four for each thread, so what is kept of them is bounded.
    private nonisolated(nonsending) func forEachLeaf<Product: Sendable>(
        jobs: Int?, work: @escaping @Sendable (_ leaf: String) throws(WebImageError) -> Product,
        take: (Product) -> Void
    ) async throws(WebImageError) {
        let leaves = try leafPaths()
        let jobs = max(1, min(jobs ?? Processors.count, CacheKey.leafCount))
        let pool = ThreadPool(threads: jobs, name: "check")
        let result = await withTaskGroup(
            of: (index: Int, product: Result<Product, WebImageError>).self, returning: Result<Void, WebImageError>.self
        ) { group in
            var (started, running, taken) = (0, 0, 0)
            var waiting: [Int: Result<Product, WebImageError>] = [:]
            while taken < leaves.count {
                while running < jobs, started < min(leaves.count, taken + 4 * jobs) {
                    let (index, leaf) = (started, leaves[started])
                    group.addTask(executorPreference: pool) {
                        do throws(WebImageError) { return (index, .success(try work(leaf))) } catch {
                            return (index, .failure(error))
                        }
                    }
                    started += 1
                    running += 1
                }
                guard let done = await group.next() else { break }
                running -= 1
                waiting[done.index] = done.product
                while let product = waiting.removeValue(forKey: taken) {
                    switch product {
                    case .success(let product): take(product)
                    case .failure(let error):
                        group.cancelAll()
                        return .failure(error)
                    }
                    taken += 1
                }
            }
            return .success(())
        }
        try result.get()
    }
}
