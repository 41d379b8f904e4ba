internal import CLinux
internal import Glibc

/// What a cache directory is like, for whoever looks whether it is fit for use.
public struct CacheCondition: Sendable, Equatable {
    /// ``DiskCache/id``.
    public var id: String?
    /// The file system, as `ext4` or `nfs`; its magic number in hexadecimal digits where this has no name for it.
    public var fileSystem: String
    /// Whether it has unnamed files; where not, a crash may leave files `.t-…`.
    public var hasUnnamedFiles: Bool
    /// Whether it has extended attributes; where not, each image has a second file.
    public var hasExtendedAttributes: Bool
    /// Whether it has hard links; where not, exports are copies.
    public var hasHardLinks: Bool
    /// Bytes and inodes that this user may still fill; nil where that is not known.
    public var freeSize: Int?, freeInodes: Int?
    /// Sentences with what should be mended.
    public var warnings: [String]
}

extension DiskCache {
    static let idPath = ".prefetch/id"

    /// What tells this cache from every other, 32 hexadecimal digits in `.prefetch/id`: two processes with the same id work on the same
    /// directory, whatever path it has for each of them. A copy of the directory keeps it until that file is removed. Nil where the cache
    /// has none and this user cannot make it.
    public var id: String? {
        guard let file = OpenFile(clinux_open_beneath(root, Self.idPath, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0)),
            let bytes = OpenFile.read(file.descriptor, at: 0, limit: 64)
        else { return nil }
        let digits = bytes.prefix { $0 != UInt8(ascii: "\n") }
        return digits.count == 32 && digits.allSatisfy(Self.isHex) ? String(decoding: digits, as: UTF8.self) : nil
    }

    /// Looks what the directory is like, and tries what its file system can do; leaves nothing behind.
    /// - Throws: `localFault` where nothing can be written.
    public func condition() throws(WebImageError) -> CacheCondition {
        var facts = statvfs()
        let isKnown = fstatvfs(root, &facts) == 0
        var condition = CacheCondition(
            id: id, fileSystem: Self.name(ofFileSystem: clinux_fs_magic(root)), hasUnnamedFiles: false,
            hasExtendedAttributes: false, hasHardLinks: false, freeSize: freeSize,
            // A file system without a table of inodes says 0 of 0.
            freeInodes: isKnown && facts.f_files > 0 ? Int(clamping: facts.f_favail) : nil, warnings: warnings)
        if let unnamed = OpenFile(clinux_open_beneath(root, ".prefetch", clinux_tmpfile_flags(), 0o600)) {
            condition.hasUnnamedFiles = true
            _ = unnamed
        }
        let (one, two) = (".prefetch/\(Self.temporaryName())", ".prefetch/\(Self.temporaryName())")
        let flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC
        guard let file = OpenFile(clinux_open_beneath(root, one, flags, 0o600)) else { throw fault("write") }
        defer {
            removeName(one)
            removeName(two)
        }
        condition.hasExtendedAttributes = setAttribute(Self.recordAttribute, [0], of: file.descriptor) == 0
        condition.hasHardLinks = linkat(root, one, root, two, 0) == 0
        if configuration.usesUnnamedFiles == .never { condition.hasUnnamedFiles = false }
        if configuration.usesExtendedAttributes == .never { condition.hasExtendedAttributes = false }
        return condition
    }

    /// linux/magic.h
    private static func name(ofFileSystem magic: Int64) -> String {
        let names: [Int64: String] = [
            0xEF53: "ext4", 0x5846_5342: "xfs", 0x9123_683E: "btrfs", 0x0102_1994: "tmpfs", 0x794C_7630: "overlay",
            0x6969: "nfs", 0x4D44: "vfat", 0xFF53_4D42: "cifs", 0xFE53_4D42: "smb2", 0x6573_5546: "fuse",
            0x2FC1_2FC1: "zfs", 0xF2F5_2010: "f2fs", 0x0000_9660: "iso9660", 0x7371_7368: "squashfs",
        ]
        return names[magic] ?? String(magic, radix: 16)
    }
}
