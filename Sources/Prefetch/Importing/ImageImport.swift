internal import Glibc
internal import Threading
package import WebImage

/// Imports images into a cache: each is verified, and stored under the key of its URL. Existing entries stay.
package struct ImageImport: Sendable {
    package struct Tally: Sendable, Equatable {
        package var stored = 0
        package var present = 0
        package var missing = 0
        /// Files that are not complete images, are over a limit, or differ from the list's digest.
        package var refused = 0
    }

    private static let groupSize = 64

    private let disk: DiskCache
    private let rule: CacheKeyRule
    private let level: ValidationLevel
    private let most: Int
    private let coder: ImageCoder
    private let pool = ThreadPool(threads: max(2, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN)))), name: "import")
    private let onRefusal: @Sendable (_ name: String, _ reason: String) -> Void

    /// * `level`: how far each is verified.
    /// * `most`: the most bytes of an image.
    /// * `coder`: verifies them, within its limits.
    /// * `onRefusal`: called for each rejected file, with the reason.
    package init(
        into disk: DiskCache, rule: CacheKeyRule, level: ValidationLevel, most: Int, coder: ImageCoder = ImageCoder(),
        onRefusal: @escaping @Sendable (_ name: String, _ reason: String) -> Void
    ) {
        (self.disk, self.rule, self.level, self.most) = (disk, rule, level, most)
        (self.coder, self.onRefusal) = (coder, onRefusal)
    }

    /// Imports everything; stored images survive a power cut once this returns.
    /// - Throws: `unreadableList`, `notFound`, `inputOutput` if a file cannot be read or the cache not be written.
    package func run(_ source: ImageSource, list: URLList?) async throws(PrefetchError) -> Tally {
        var tally = Tally()
        var group: [ImageSource.Item] = []
        func turn() async throws(PrefetchError) {
            guard !Task.isCancelled else { throw PrefetchError(.stopped, "stopped before everything was imported") }
            for end in try await takeOver(group) {
                switch end {
                case .stored: tally.stored += 1
                case .present: tally.present += 1
                case .missing: tally.missing += 1
                case .refused: tally.refused += 1
                }
            }
            group.removeAll(keepingCapacity: true)
        }
        try await source.forEach(list: list) { item async throws(PrefetchError) in
            group.append(item)
            if group.count == Self.groupSize { try await turn() }
            return true
        }
        try await turn()
        do throws(WebImageError) {
            try await pool.run { [disk] () throws(WebImageError) in try disk.sync() }
        } catch {
            throw PrefetchError(.inputOutput, error.message)
        }
        return tally
    }

    private enum End: Sendable {
        case stored, present, missing, refused
    }

    private func takeOver(_ items: [ImageSource.Item]) async throws(PrefetchError) -> [End] {
        let results = await withTaskGroup(of: Result<End, WebImageError>.self) { group in
            for item in items {
                group.addTask {
                    await pool.run { Result { () throws(WebImageError) in try takeOver(item) } }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        var ends: [End] = []
        for result in results {
            do throws(WebImageError) { ends.append(try result.get()) } catch {
                throw PrefetchError(.inputOutput, error.message, hint: "what was imported until now is there")
            }
        }
        return ends
    }

    private func takeOver(_ item: ImageSource.Item) throws(WebImageError) -> End {
        let key: String
        do throws(WebImageError) { key = try rule.key(for: item.url) } catch {
            onRefusal(item.name, error.message)
            return .refused
        }
        if let entry = try disk.images.find(CacheKey(key), atLeast: level), !entry.needsVerification {
            guard let digest = item.digest, try entry.knownDigest() != digest else { return .present }
        }
        guard let bytes = try item.read(most) else { return .missing }
        if let digest = item.digest, SHA256.hash(bytes) != digest {
            onRefusal(item.name, "its SHA-256 differs from the list")
            return .refused
        }
        // Who wrote the list may have named any file of this user: the contents of one that is not an image are not printed.
        if level != .none, bytes.span.withUnsafeBytes({ ImageFormat(sniffing: $0) }) == nil {
            onRefusal(item.name, "not an image of a known format")
            return .refused
        }
        do throws(WebImageError) {
            try disk.images.storeVerified(bytes, forKey: key, level: level, coder: coder, replacing: item.digest != nil)
            return .stored
        } catch {
            guard [.badImageData, .unsupportedFormat, .tooLarge, .decoderCrashed].contains(error.code) else {
                throw error
            }
            onRefusal(item.name, error.message)
            return .refused
        }
    }
}
