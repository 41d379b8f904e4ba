internal import CLinux
internal import Glibc
internal import Threading

/// How many images a cache has and what they take of the disk, kept by all its processes in `.prefetch/account` without a walk: one
/// atomic addition for each image that comes or goes.
///
/// A process that is killed between an image's name and its addition leaves the account wrong by that image; each sweep counts anew.
/// After a restart of the machine, or where the file is lost, it counts as unknown until somebody has counted.
public final class CacheAccount: Sendable {
    /// What an account says.
    package struct Totals: Sendable, Equatable {
        /// How many images.
        package var count = 0
        /// Bytes in whole blocks of 4 KiB.
        package var size = 0

        fileprivate mutating func add(_ status: stat) {
            count += 1
            size += CacheAccount.blocks(Int(status.st_size)) * CacheAccount.block
        }
    }

    // 512 words: "prefetch", the two halves of the boot's id, whether everything was counted, and from the eighth on one word for
    // each leaf directory: images << 40 | blocks.
    private static let folder = ".prefetch"
    private static let name = "account"
    private static let path = "\(folder)/\(name)"
    private static let wordCount = 512
    private static let magic: Int64 = 0x7072_6566_6574_6368
    private static let counted = 3
    private static let firstLeaf = 8
    private static let image: Int64 = 1 << 40
    /// What a leaf may have: 4 million images, 64 TiB; some less than nothing, where processes were killed. Another word is damage.
    private static let plausibleImages = -65_536...(1 << 22)
    private static let plausibleBlocks = -(1 << 24)...(1 << 34)
    static let block = 4096

    private struct Mapping {
        let words: SharedCounters
        let inode: ino_t
    }

    private let directory: CacheDirectory
    private let mapping: Locked<Mapping?>

    /// The account of a cache; nothing is known or noted before the first ``refresh()``, and never in a cache that is only looked up.
    init(_ directory: CacheDirectory) {
        self.directory = directory
        mapping = Locked(nil)
    }

    // MARK: Telling

    /// How many images there are and what they take of the disk, in blocks of 4 KiB as `du` counts them: known without a walk, and the
    /// same for all processes on the cache. Counted anew where nobody knows, as after a restart of the machine.
    /// - Throws: `localFault` where it has to be counted and cannot be.
    public func usage() throws(WebImageError) -> (count: Int, size: Int) {
        refresh()
        let totals = if let totals { totals } else { try recount() }
        return (totals.count, totals.size)
    }

    /// The sums as far as they are known without asking the disk; nil where they are not, as where a word is damaged: the next count sets it
    /// right. Reads memory alone.
    package var totals: Totals? {
        guard let words, words[0] == Self.magic, words[Self.counted] == 1 else { return nil }
        var totals = Totals()
        for leaf in 0..<CacheKey.leafCount {
            let (images, blocks) = Self.parts(words[Self.firstLeaf + leaf])
            guard Self.plausibleImages.contains(images), Self.plausibleBlocks.contains(blocks) else { return nil }
            totals.count += images
            totals.size += blocks * Self.block
        }
        // What a killed process left open may be less than nothing.
        return Totals(count: max(0, totals.count), size: max(0, totals.size))
    }

    /// Bytes of its file system that this user may still fill; nil where that is not known.
    package var freeSize: Int? {
        var facts = statvfs()
        guard fstatvfs(directory.descriptor, &facts) == 0 else { return nil }
        return Int(
            clamping: UInt64(facts.f_bavail).multipliedReportingOverflow(by: UInt64(facts.f_frsize)).partialValue)
    }

    // MARK: Noting

    /// Notes images that came or went.
    ///
    /// * `blocks`: what they take in blocks, see ``blocks(_:)``; less than 0 where they went.
    func add(images: Int, blocks: Int, leaf: Int) {
        words?.add(Int64(images) &* Self.image &+ Int64(blocks), to: Self.firstLeaf + leaf)
    }

    /// Blocks of 4 KiB that a file of this length takes; at most 128 TiB of them, since a file of nothing but holes may be longer.
    static func blocks(_ length: Int) -> Int { min(1 << 35, length / block + (length % block > 0 ? 1 : 0)) }

    /// Maps the file, which is made where there is none; again where it is not the one that is mapped any more, as after somebody removed
    /// it, cut it short or wrote over it. Where that fails there is no account: whoever asks has to walk.
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

    /// Counts every leaf directory and sets the account right.
    @discardableResult
    func recount() throws(WebImageError) -> Totals {
        var totals = Totals()
        for leaf in 0..<CacheKey.leafCount {
            for (_, status) in try recount(leaf: leaf) { totals.add(status) }
        }
        finishCount()
        return self.totals ?? totals
    }

    /// Counts one leaf directory and sets its word right. What comes or goes meanwhile makes it count again, a few times at most.
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

    /// The images of one leaf directory. What has an image's name and is no file is left out.
    func images(leaf index: Int) throws(WebImageError) -> [(name: String, status: stat)] {
        let path = CacheKey.leaf(index)
        guard let leaf = directory.folder(path) else {
            // What stands in its place is moved aside by the next that wants an image of it.
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

    /// Every leaf was counted.
    func finishCount() {
        guard let words else { return }
        // Whatever it was: a flipped bit is neither.
        _ = words.replace(Self.counted, words[Self.counted], with: 1)
    }

    // MARK: File

    private var words: SharedCounters? { mapping.withLock { $0?.words } }

    /// Blocks as a signed number of 40 bits, so that a sum below 0 takes nothing from the images beside it.
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
            // None of ours.
            guard directory.removeName(path) == 0 || errno == ENOENT else { return nil }
        }
        return nil
    }

    /// Of an earlier run of the machine: a power cut may have taken images or additions.
    private static func adopt(_ words: SharedCounters) {
        let boot = bootWords
        guard (words[1], words[2]) != boot else { return }
        _ = words.replace(counted, words[counted], with: 0)
        _ = words.replace(1, words[1], with: boot.0)
        _ = words.replace(2, words[2], with: boot.1)
    }

    /// Makes the file: whole and with all its blocks before it has its name.
    private static func make(_ directory: CacheDirectory) -> Bool {
        var words = [Int64](repeating: 0, count: wordCount)
        words[0] = magic
        (words[1], words[2]) = bootWords
        // Nobody can have stored anything yet that another account has: they all make theirs first.
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

    /// random(4), proc(5): an id of this run of the machine.
    private static let bootWords: (Int64, Int64) = {
        guard let file = OpenFile(clinux_open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC, 0)),
            let bytes = OpenFile.read(file.descriptor, at: 0, limit: 64)
        else { return (0, 0) }
        let digits = String(decoding: bytes, as: UTF8.self).filter(\.isHexDigit)
        func word(_ text: Substring) -> Int64 { Int64(bitPattern: UInt64(text, radix: 16) ?? 0) }
        return (word(digits.prefix(16)), word(digits.dropFirst(16).prefix(16)))
    }()
}
