internal import CLinux
internal import Glibc
internal import Threading

/// Number and disk usage of a cache's images, kept in `.prefetch/account` by its processes without a walk: one atomic addition per image.
///
/// A process killed between naming an image and the addition leaves the account off by that image; each sweep recounts. After a reboot, or
/// if the file is lost, the account is unknown until the next count.
public final class CacheAccount: Sendable {
    package struct Totals: Sendable, Equatable {
        package var count = 0
        /// Bytes in whole blocks of 4 KiB.
        package var size = 0

        fileprivate mutating func add(_ status: stat) {
            count += 1
            size += CacheAccount.blocks(Int(status.st_size)) * CacheAccount.block
        }
    }

    // 512 words: "prefetch", the two halves of the boot ID, whether all was counted, then from the eighth on each leaf: images << 40 |
    // blocks.
    private static let folder = ".prefetch"
    private static let name = "account"
    private static let path = "\(folder)/\(name)"
    private static let wordCount = 512
    private static let magic: Int64 = 0x7072_6566_6574_6368
    private static let counted = 3
    private static let firstLeaf = 8
    private static let image: Int64 = 1 << 40
    /// Plausible contents of a leaf: 4 million images, 64 TiB; slightly negative after killed processes. Other values mean damage.
    private static let plausibleImages = -65_536...(1 << 22)
    private static let plausibleBlocks = -(1 << 24)...(1 << 34)
    static let block = 4096

    private struct Mapping {
        let words: SharedCounters
        let inode: ino_t
    }

    private let directory: CacheDirectory
    private let mapping: Locked<Mapping?>

    /// Creates the account of a cache; nothing is known or recorded before the first ``refresh()``, and never in a read-only cache.
    init(_ directory: CacheDirectory) {
        self.directory = directory
        mapping = Locked(nil)
    }

    // MARK: State

    /// Number and disk usage of the images, in blocks of 4 KiB like `du`: known without a walk, and the same for all processes on the
    /// cache. Recounts if unknown, as after a reboot.
    /// - Throws: `localFault` if a needed count fails.
    public func usage() throws(WebImageError) -> (count: Int, size: Int) {
        refresh()
        let totals = if let totals { totals } else { try recount() }
        return (totals.count, totals.size)
    }

    /// The totals if known without disk access; nil if they are not, or a word is damaged (the next count repairs it). Reads only memory.
    package var totals: Totals? {
        guard let words, words[0] == Self.magic, words[Self.counted] == 1 else { return nil }
        var totals = Totals()
        for leaf in 0..<CacheKey.leafCount {
            let (images, blocks) = Self.parts(words[Self.firstLeaf + leaf])
            guard Self.plausibleImages.contains(images), Self.plausibleBlocks.contains(blocks) else { return nil }
            totals.count += images
            totals.size += blocks * Self.block
        }
        // Killed processes may leave negative values.
        return Totals(count: max(0, totals.count), size: max(0, totals.size))
    }

    /// Bytes of the file system available to this user; nil if unknown.
    package var freeSize: Int? {
        var facts = statvfs()
        guard fstatvfs(directory.descriptor, &facts) == 0 else { return nil }
        return Int(
            clamping: UInt64(facts.f_bavail).multipliedReportingOverflow(by: UInt64(facts.f_frsize)).partialValue)
    }

    // MARK: Updates

    /// Records added or removed images.
    /// * `blocks`: their size in blocks, see ``blocks(_:)``; negative if removed.
    func add(images: Int, blocks: Int, leaf: Int) {
        words?.add(Int64(images) &* Self.image &+ Int64(blocks), to: Self.firstLeaf + leaf)
    }

    /// Blocks of 4 KiB for a file length, at most 128 TiB, because a sparse file may be longer.
    static func blocks(_ length: Int) -> Int { min(1 << 35, length / block + (length % block > 0 ? 1 : 0)) }

    /// Maps the file, creating it if missing, and remaps it if it was removed, truncated or overwritten. Without it callers have to walk.
    func refresh() {
        guard !directory.isReadOnly else { return }
        let known = mapping.withLock { $0 }
        var status = stat()
        if let folder = directory.folder(Self.folder),
            fstatat(folder.descriptor, Self.name, &status, AT_SYMLINK_NOFOLLOW) == 0, status.st_ino == known?.inode,
            status.st_size == Self.wordCount * 8, known?.words[0] == Self.magic
        {
            return
        }
        let fresh = Self.map(directory)
        mapping.withLock { $0 = fresh }
    }

    // MARK: Counting

    @discardableResult
    func recount() throws(WebImageError) -> Totals {
        var totals = Totals()
        for leaf in 0..<CacheKey.leafCount {
            for (_, status) in try recount(leaf: leaf) { totals.add(status) }
        }
        finishCount()
        return self.totals ?? totals
    }

    /// Counts one leaf directory and corrects its word; repeated up to three times if images are added or removed meanwhile.
    /// - Returns: its images.
    @discardableResult
    func recount(leaf index: Int) throws(WebImageError) -> [(name: String, status: stat)] {
        var found: [(name: String, status: stat)] = []
        for _ in 0..<3 {
            let before = words?[Self.firstLeaf + index] ?? 0
            found = try images(leaf: index)
            var totals = Totals()
            for (_, status) in found { totals.add(status) }
            let word = Int64(totals.count) &* Self.image &+ Int64(totals.size / Self.block)
            guard let words, !words.replace(Self.firstLeaf + index, before, with: word) else { break }
        }
        return found
    }

    /// The images of one leaf directory, without non-files that have an image's name.
    func images(leaf index: Int) throws(WebImageError) -> [(name: String, status: stat)] {
        let path = CacheKey.leaf(index)
        guard let leaf = directory.folder(path) else {
            // The next access to an image in this leaf moves the obstacle aside.
            guard errno == ENOENT || Quarantine.isObstacle(errno) else { throw directory.fault("list \(path)") }
            return []
        }
        var found: [(name: String, status: stat)] = []
        for name in try directory.names(in: path, length: CacheKey.nameLength) {
            var status = stat()
            guard fstatat(leaf.descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0,
                status.st_mode & S_IFMT == S_IFREG
            else { continue }
            found.append((name, status))
        }
        return found
    }

    func finishCount() {
        guard let words else { return }
        // Replaces any value: after a bit flip it may be neither 0 nor 1.
        _ = words.replace(Self.counted, words[Self.counted], with: 1)
    }

    // MARK: File

    private var words: SharedCounters? { mapping.withLock { $0?.words } }

    /// Blocks are a signed 40-bit number, so that a negative sum does not borrow from the images beside it.
    private static func parts(_ word: Int64) -> (images: Int, blocks: Int) {
        let blocks = (word << 24) >> 24
        return (Int((word &- blocks) >> 40), Int(blocks))
    }

    private static func map(_ directory: CacheDirectory) -> Mapping? {
        for _ in 0..<3 {
            guard let file = directory.open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) else {
                guard errno == ENOENT, make(directory) else { return nil }
                continue
            }
            var status = stat()
            guard fstat(file.descriptor, &status) == 0 else { return nil }
            if status.st_mode & S_IFMT == S_IFREG, status.st_size == wordCount * 8,
                let words = SharedCounters(file.descriptor, count: wordCount), words[0] == magic
            {
                adopt(words)
                return Mapping(words: words, inode: status.st_ino)
            }
            // Not an account file.
            guard directory.removeName(path) == 0 || errno == ENOENT else { return nil }
        }
        return nil
    }

    /// From before the last boot: a power cut may have lost images or additions.
    private static func adopt(_ words: SharedCounters) {
        let boot = bootWords
        guard (words[1], words[2]) != boot else { return }
        _ = words.replace(counted, words[counted], with: 0)
        _ = words.replace(1, words[1], with: boot.0)
        _ = words.replace(2, words[2], with: boot.1)
    }

    /// Creates the file: complete and with all blocks allocated before it gets its name.
    private static func make(_ directory: CacheDirectory) -> Bool {
        var words = [Int64](repeating: 0, count: wordCount)
        words[0] = magic
        (words[1], words[2]) = bootWords
        // No image can exist that another account has counted: every process creates its account before storing.
        words[counted] = isEmpty(directory) ? 1 : 0
        return words.withUnsafeBytes { directory.makeOnce(path, $0, mode: 0o666, isSynced: false) == 0 }
    }

    private static func isEmpty(_ directory: CacheDirectory) -> Bool {
        guard let images = directory.open("v1", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
            let stream = fdopendir(images.release())
        else { return false }
        defer { closedir(stream) }
        var names = 0
        while readdir(stream) != nil { names += 1 }
        // "." and "..".
        return names == 2
    }

    /// random(4), proc(5): the ID of the current boot.
    private static let bootWords: (Int64, Int64) = {
        guard let file = OpenFile(clinux_open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC, 0)),
            let bytes = OpenFile.read(file.descriptor, at: 0, limit: 64)
        else { return (0, 0) }
        let digits = String(decoding: bytes, as: UTF8.self).filter(\.isHexDigit)
        func word(_ text: Substring) -> Int64 { Int64(bitPattern: UInt64(text, radix: 16) ?? 0) }
        return (word(digits.prefix(16)), word(digits.dropFirst(16).prefix(16)))
    }()
}
