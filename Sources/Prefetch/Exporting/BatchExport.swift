internal import Threading
package import WebImage

/// The images of a list in its order: the newest result of each line with its cache entry.
package struct BatchExport: Sendable {
    static let groupSize = 512
    /// Longer lists get folders of so many lines: `ls` and file managers are slow with millions of names in one.
    static let linesPerFolder = 10_000

    let results: BatchResults
    private let disk: DiskCache
    /// By batch of the chain: a retry may change images in another way.
    private let rules: [CacheKeyRule]
    /// By batch of the chain: verifies an image that is a copy, and so has no record that is believed.
    private let proofs: [ImageProof]
    private let total: Int
    private let cacheID: String?
    private let state = Locked(Absent())

    package struct Absent: Sendable, Equatable {
        /// In caches of other machines, with the number in each.
        package var elsewhere: [BatchCache: Int] = [:]
        package var missing = 0

        /// Subtracts the images that were found elsewhere.
        package func without(_ found: Absent) -> Absent {
            var rest = self
            rest.missing -= found.missing
            rest.elsewhere.merge(found.elsewhere) { $0 - $1 }
            rest.elsewhere = rest.elsewhere.filter { $0.value > 0 }
            return rest
        }
    }

    package var absent: Absent { state.withLock { $0 } }
    private let pool = ThreadPool(threads: 1, name: "export")

    /// - Throws: `notFound`, `unreadableList` if the list is missing or has changed.
    /// * `list`: as of ``BatchResults``.
    package init(
        _ chain: BatchChain, queue: PrefetchQueue, cache: DiskCache, list: ListStream? = nil
    ) async throws(PrefetchError) {
        results = try await BatchResults(chain, queue: queue, list: list)
        disk = cache
        cacheID = cache.folder.id
        rules = chain.batches.map { CacheKeyRule($0.options) }
        proofs = chain.batches.map {
            ImageProof(cache, level: $0.options.validate, unverifiable: $0.options.unverifiable)
        }
        total = chain.root.total
    }

    /// Lines of the list that were changed since they were queued: they are left out.
    package var lost: [ClosedRange<Int>] { results.lost }

    /// The list's columns besides the URL, sorted by name.
    package func columns() async throws(PrefetchError) -> [TypedColumn] { try await results.columns() }

    /// The column with the captions: the one that is named, or else one that is called as such columns are; nil if there is none.
    /// * `names`: of all columns.
    /// - Throws: `configuration` if there is no column of the name.
    package static func captionColumn(_ name: String?, among names: [String]) throws(PrefetchError) -> String? {
        guard let name else {
            return TableColumns.caption(names).map { names[$0] }
        }
        let found = names.first { $0.hasBytes(of: name) } ?? names.first { $0.lowercased() == name.lowercased() }
        guard let found else {
            throw PrefetchError(
                .configuration, "the list has no kept column '\(name)' for captions",
                hint: names.isEmpty
                    ? "keep it when the list is run: --keep-columns \(name)"
                    : "kept columns: \(names.joined(separator: ", "))")
        }
        return found
    }

    /// Runs `body` with the lines in groups until it returns false, on a thread that may block.
    /// - Throws: what `body` throws; `inputOutput` where the cache cannot be read, `stopped` where the task is cancelled.
    package func forEachGroup(
        _ body: @escaping @Sendable ([ExportedLine]) throws(PrefetchError) -> Bool
    ) async throws(PrefetchError) {
        try await forEachEntry { group throws(PrefetchError) in
            try body(
                group.map { line, entry in ExportedLine(line, entry, isElsewhere: entry == nil && isElsewhere(line)) })
        }
    }

    package enum Naming: Sendable {
        /// By line number and format; in folders of ``linesPerFolder`` lines if the list is longer.
        case lines
        case tree
        /// SDWebImage's file name of the key, and the folders below its cache folder.
        case sdWebImage(SDWebImageFileName.Layout)
    }

    /// Adds every image to a folder.
    /// - Throws: as ``ImageFolder/add(_:as:)``, `inputOutput` if the cache cannot be read, `stopped` if the task is cancelled.
    package func fill(_ folder: ImageFolder, _ naming: Naming = .lines) async throws(PrefetchError) {
        let width = max(6, String(total).count)
        let rules = rules
        let isSharded = total > Self.linesPerFolder
        try await forEachEntry { group throws(PrefetchError) in
            for (line, entry) in group {
                if let entry {
                    let name =
                        switch naming {
                        case .lines: Self.name(line.line, entry.format, width: width, isSharded: isSharded)
                        case .tree: TreeName.path(of: line.url, entry.format)
                        case .sdWebImage(let layout):
                            try Self.sdWebImageName(rules[line.batch], line.url, layout)
                        }
                    try folder.add(entry, as: name)
                } else {
                    if line.outcome?.isSkipped != false { folder.skip() }
                }
            }
            return true
        }
    }

    /// Calls `body` with groups of lock lines, nil for a line without an image.
    package func forEachLock(
        _ body: @escaping @Sendable ([ImageLock?]) throws(PrefetchError) -> Bool
    ) async throws(PrefetchError) {
        try await forEachEntry { group throws(PrefetchError) in
            var locks: [ImageLock?] = []
            for (line, entry) in group {
                guard let entry else {
                    locks.append(nil)
                    continue
                }
                do throws(WebImageError) {
                    locks.append(
                        ImageLock(
                            url: line.url, digest: try entry.knownDigest(), size: entry.size,
                            width: entry.knownRecord?.width ?? 0, height: entry.knownRecord?.height ?? 0))
                } catch {
                    throw PrefetchError(.inputOutput, error.message)
                }
            }
            return try body(locks)
        }
    }

    private static func sdWebImageName(
        _ rule: CacheKeyRule, _ url: String, _ layout: SDWebImageFileName.Layout
    ) throws(PrefetchError) -> String {
        let key: String
        do throws(WebImageError) { key = try rule.sdWebImageKey(for: url) } catch {
            throw PrefetchError(.configuration, error.message)
        }
        guard let name = SDWebImageFileName.name(forKey: key, layout: layout) else {
            throw PrefetchError(
                .configuration, "this machine's OpenSSL has no MD5, of which SDWebImage makes its names",
                hint: "export on a machine whose OpenSSL is not in FIPS mode")
        }
        return "\(layout.folder)/\(name)"
    }

    /// `000007.jpg`, or `00000/000007.jpg` if each folder has ``linesPerFolder`` lines.
    static func name(_ line: Int, _ format: ImageFormat, width: Int, isSharded: Bool = false) -> String {
        func padded(_ number: Int, _ width: Int) -> String {
            let digits = String(number)
            return String(repeating: "0", count: max(0, width - digits.count)) + digits
        }
        let folder = isSharded ? padded((line - 1) / linesPerFolder, 5) + "/" : ""
        return folder + padded(line, width) + "." + format.fileExtension
    }

    private func forEachEntry(
        _ body: @escaping @Sendable ([(BatchResults.Line, CacheEntry?)]) throws(PrefetchError) -> Bool
    ) async throws(PrefetchError) {
        var group: [BatchResults.Line] = []
        var goesOn = true
        func turn() async throws(PrefetchError) {
            guard !Task.isCancelled else { throw Self.stopped }
            let lines = group
            group.removeAll(keepingCapacity: true)
            goesOn = try await pool.run { () throws(PrefetchError) in try body(try lookUp(lines)) }
        }
        try await results.forEach { line async throws(PrefetchError) in
            group.append(line)
            if group.count == Self.groupSize { try await turn() }
            return goesOn
        }
        if goesOn { try await turn() }
    }

    /// Calls `body` with lines and what the cache has of them, on a thread that may block.
    /// * `hashes`: nil: nobody asks for them.
    /// - Throws: as ``forEachGroup(_:)``.
    func exported(
        _ lines: [BatchResults.Line], _ hashes: ImageHashes?,
        _ body: @escaping @Sendable (ExportedLine, CacheEntry?) throws(PrefetchError) -> Void
    ) async throws(PrefetchError) {
        guard !Task.isCancelled else { throw Self.stopped }
        let found = try await pool.run { () throws(PrefetchError) in try lookUp(lines) }
        let known = try await hashes?.of(found.map { $0.1 }) ?? [:]
        try await pool.run { () throws(PrefetchError) in
            for (place, (line, entry)) in found.enumerated() {
                var exported = ExportedLine(line, entry, isElsewhere: entry == nil && isElsewhere(line))
                exported.image?.perceptualHash = known[place]
                if let entry, exported.image?.original != nil {
                    exported.image?.originalSHA256 = disk.images.validators(of: entry)?.contentDigest?.hex
                }
                try body(exported, entry)
            }
        }
    }

    /// Runs `body` on a thread that may block.
    func run<Result: Sendable>(
        _ body: @escaping @Sendable () throws(PrefetchError) -> Result
    ) async throws(PrefetchError) -> Result {
        try await pool.run(body)
    }

    static let stopped = PrefetchError(.stopped, "stopped before everything was written")

    private func lookUp(
        _ lines: [BatchResults.Line]
    ) throws(PrefetchError) -> [(BatchResults.Line, CacheEntry?)] {
        var found: [(BatchResults.Line, CacheEntry?)] = []
        found.reserveCapacity(lines.count)
        for line in lines {
            guard let outcome = line.outcome, !outcome.isSkipped else {
                found.append((line, nil))
                continue
            }
            do throws(WebImageError) {
                let key = try rules[line.batch].key(for: line.url, line.settings)
                let entry = try proofs[line.batch].find(key)
                if entry == nil { miss(line) }
                found.append((line, entry))
            } catch {
                throw PrefetchError(.inputOutput, error.message)
            }
        }
        return found
    }

    /// Whether an image was stored in another cache than the given one.
    private func isElsewhere(_ line: BatchResults.Line) -> Bool { line.cache.map { $0.id != cacheID } ?? false }

    private func miss(_ line: BatchResults.Line) {
        state.withLock { absent in
            if let cache = line.cache, isElsewhere(line) {
                absent.elsewhere[cache, default: 0] += 1
            } else {
                absent.missing += 1
            }
        }
    }
}
