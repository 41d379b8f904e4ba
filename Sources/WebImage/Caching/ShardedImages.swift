internal import CLinux
internal import Glibc
internal import Threading

/// Images of a cache that lies in a folder of shards, as `DIR/.prefetch` does: once a shard is written, its images are in its archive alone, and in
/// their place in the cache is a symbolic link, `shard:00012/37`, which nothing follows. It says which archive and which line; where the
/// bytes are, and their record, is in the ``ShardIndex``. A link to what is not there is an obstacle, and so a miss.
final class ShardedImages: Sendable {
    /// An archive and its index.
    private final class Shard: Sendable {
        let archive: Int32, index: Int32
        let inode: UInt, identity: UInt32
        let owner: uid_t

        init(_ archive: Int32, _ index: Int32, inode: UInt, identity: UInt32, owner: uid_t) {
            (self.archive, self.index, self.inode, self.identity) = (archive, index, inode, identity)
            self.owner = owner
        }

        deinit {
            close(archive)
            close(index)
        }
    }

    /// An image of an archive.
    struct Member: ~Copyable {
        let archive: OpenFile
        let path: String
        let slot: ShardIndex.Read
        /// What no copy of the archive has, and who owns its index.
        let identity: UInt32, owner: uid_t

        /// Its archive's descriptor, for the caller to close.
        consuming func take() -> Int32 { archive.release() }
    }

    private static let scheme = "shard:"
    private static let mostOpen = 16

    private let directory: CacheDirectory
    private let shards = Locked<[(name: String, shard: Shard)]>([])

    init(_ directory: CacheDirectory) { self.directory = directory }

    /// The target of a link.
    static func link(_ shard: String, _ place: Int) -> String { "\(scheme)\(shard)/\(place)" }

    private static func parsed(_ link: [UInt8]) -> (shard: String, place: Int)? {
        let parts = link.dropFirst(scheme.utf8.count).split(
            separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard link.starts(with: scheme.utf8), parts.count == 2, (5...18).contains(parts[0].count),
            parts.allSatisfy({ $0.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } }),
            let place = Int(String(decoding: parts[1], as: UTF8.self)), place < Int(Int32.max)
        else { return nil }
        return (String(decoding: parts[0], as: UTF8.self), place)
    }

    /// The image that a link of the cache leads to; nil if it is none of these links, or leads to nothing.
    /// * `leaf`: the folder of the link; nil: the cache, with the whole path as `name`.
    func member(_ name: UnsafePointer<CChar>, in leaf: Int32) -> Member? {
        var target = [UInt8](repeating: 0, count: 64)
        let count = target.withUnsafeMutableBytes {
            readlinkat(leaf, name, $0.baseAddress!.assumingMemoryBound(to: CChar.self), $0.count)
        }
        guard count > 0, count < target.count, let link = Self.parsed(Array(target.prefix(count))),
            let shard = shard(link.shard), let slot = ShardIndex.read(shard.index, at: link.place)
        else { return nil }
        guard let archive = OpenFile(fcntl(shard.archive, F_DUPFD_CLOEXEC, 0)) else { return nil }
        return Member(
            archive: archive, path: "\(folder)/\(link.shard).tar", slot: slot, identity: shard.identity,
            owner: shard.owner)
    }

    /// The folder around the cache.
    private var folder: String {
        let path = directory.path
        guard path.hasSuffix("/.prefetch") else { return "\(path)/.." }
        return String(path.dropLast("/.prefetch".utf8.count))
    }

    private func shard(_ name: String) -> Shard? {
        let known = shards.withLock { $0.first { $0.name == name }?.shard }
        let flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY
        guard let folder = OpenFile(clinux_open("\(directory.path)/..", clinux_directory_flags(), 0)) else {
            return nil
        }
        var status = stat()
        guard fstatat(folder.descriptor, "\(name).tar", &status, AT_SYMLINK_NOFOLLOW) == 0 else { return nil }
        if let known, known.inode == UInt(status.st_ino) { return known }
        guard let archive = OpenFile(clinux_open_beneath(folder.descriptor, "\(name).tar", flags, 0)) else {
            return nil
        }
        var identity: UInt32 = 0
        guard clinux_stat_file(archive.descriptor, &status, &identity) == 0, status.st_mode & S_IFMT == S_IFREG,
            let index = index(name, identity, in: folder.descriptor)
        else { return nil }
        let inode = UInt(status.st_ino)
        guard fstat(index.descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        let shard = Shard(
            archive.release(), index.release(), inode: inode, identity: identity, owner: status.st_uid)
        shards.withLock { shards in
            shards.removeAll { $0.name == name }
            shards.append((name, shard))
            if shards.count > Self.mostOpen { shards.removeFirst() }
        }
        return shard
    }

    /// The index of an archive; of a copy of it that of the archive it is a copy of, whose records prove nothing.
    private func index(_ name: String, _ identity: UInt32, in folder: Int32) -> OpenFile? {
        let flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY
        if let own = OpenFile(clinux_open_beneath(folder, ShardIndex.name(name, file: identity), flags, 0)) {
            return own
        }
        guard let names = OpenFile(clinux_open_beneath(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)),
            let stream = fdopendir(names.release())
        else { return nil }
        defer { closedir(stream) }
        while let entry = readdir(stream) {
            let found = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            guard ShardIndex.isName(found, of: name) else { continue }
            return OpenFile(clinux_open_beneath(folder, found, flags, 0))
        }
        return nil
    }
}
