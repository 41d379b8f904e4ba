internal import CLinux
internal import Glibc

/// Images of the same bytes under different keys.
public struct DuplicateImages: Sendable {
    /// SHA-256 of the bytes.
    public let digest: Digest
    /// Bytes of one of them.
    public let size: Int
    /// Which keys they have, at least two.
    public let keys: [CacheKey]
}

extension DiskCache {
    /// Looks for images with the same bytes, by the digests of their records; one without a digest is read. Two walks: memory for 16 bytes
    /// an image, and for what is found.
    ///
    /// * `unreadable`: hears of what cannot be read, with the system's words.
    /// - Throws: `localFault`; `cancelled` where the task is cancelled.
    package func duplicates(
        unreadable: (_ path: String, _ reason: String) -> Void
    ) throws(WebImageError) -> [DuplicateImages] {
        var seen: [Mark] = []
        try forEachDigest(unreadable: unreadable) { digest, _ in seen.append(Mark(digest)) }
        seen.sort()
        var repeated: Set<Mark> = []
        for (before, mark) in zip(seen, seen.dropFirst()) where before == mark { repeated.insert(mark) }
        seen = []
        guard !repeated.isEmpty else { return [] }
        var groups: [Digest: (size: Int, keys: [CacheKey])] = [:]
        // What could not be read was named above.
        try forEachDigest(unreadable: { _, _ in }) { digest, entry in
            if repeated.contains(Mark(digest)) { groups[digest, default: (entry.size, [])].keys.append(entry.key) }
        }
        return groups.filter { $0.value.keys.count > 1 }
            .map { DuplicateImages(digest: $0.key, size: $0.value.size, keys: $0.value.keys) }
            .sorted { ($1.size * $1.keys.count, $0.digest.hex) < ($0.size * $0.keys.count, $1.digest.hex) }
    }

    /// Lets images of the same bytes share their blocks (ioctl_fideduperange(2)). The kernel compares the bytes under a lock; names, dates
    /// and records stay as they are, and whoever has one open notices nothing.
    /// - Returns: how many bytes are shared.
    /// - Throws: `localFault` where the file system cannot do that.
    package func shareBlocks(of images: DuplicateImages) throws(WebImageError) -> Int {
        guard !configuration.isReadOnly else { throw fault("share blocks", code: EROFS) }
        guard let first = images.keys.first, let source = try examined(first, level: .none) else { return 0 }
        var shared = 0
        for key in images.keys.dropFirst() {
            // Gone, or another image by now: the kernel would find out, but needs the same length.
            guard let other = try examined(key, level: .none), other.size == source.size else { continue }
            var offset = 0
            while offset < source.size {
                // 16 MiB is what Btrfs does at once.
                let count = clinux_share_blocks(
                    source.descriptor, other.descriptor, Int64(offset), min(16 << 20, source.size - offset))
                if count <= 0 {
                    let code = errno
                    if count < 0 && code != EILSEQ { throw cannotShare(code) }
                    break
                }
                offset += count
                shared += count
            }
        }
        return shared
    }

    private func cannotShare(_ code: Int32) -> WebImageError {
        guard [EOPNOTSUPP, ENOTTY, EINVAL, ENOSYS].contains(code) else { return fault("share blocks", code: code) }
        return WebImageError(
            .localFault,
            "the file system of the cache \(directory) cannot share blocks between files; Btrfs, and XFS with reflink=1, can",
            underlyingCode: code)
    }

    private func forEachDigest(
        unreadable: (String, String) -> Void, _ visit: (Digest, CacheEntry) -> Void
    ) throws(WebImageError) {
        try forEachEntry(unreadable: unreadable) { entry in
            guard entry.isWhole else { return !Task.isCancelled }
            do throws(WebImageError) { visit(try entry.knownDigest(), entry) } catch {
                unreadable(entry.path, error.message)
            }
            return !Task.isCancelled
        }
        if Task.isCancelled { throw WebImageError(.cancelled, "the look through the cache was cancelled") }
    }

    /// The first half of a digest.
    private struct Mark: Hashable, Comparable {
        let high: UInt64, low: UInt64

        init(_ digest: Digest) {
            func word(_ range: Range<Int>) -> UInt64 { range.reduce(0) { $0 << 8 | UInt64(digest[$1]) } }
            (high, low) = (word(0..<8), word(8..<16))
        }

        static func < (lhs: Mark, rhs: Mark) -> Bool { (lhs.high, lhs.low) < (rhs.high, rhs.low) }
    }
}
