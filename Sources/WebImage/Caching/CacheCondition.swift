internal import CLinux
internal import Glibc

/// Facts about a cache directory that show whether it is fit for use.
public struct CacheCondition: Sendable, Equatable {
    /// Unique ID of this cache, in `.prefetch/id`; nil if it has none and cannot be created.
    public var id: String?
    /// The file system, such as `ext4` or `nfs`; its magic number in hexadecimal if unknown.
    public var fileSystem: String
    /// Whether it supports unnamed files; without, a crash may leave files `.t-…`.
    public var hasUnnamedFiles: Bool
    /// Whether it supports extended attributes; without, each image has a second file.
    public var hasExtendedAttributes: Bool
    /// Whether it supports hard links; without, exports are copies.
    public var hasHardLinks: Bool
    /// Bytes and inodes available to this user; nil if unknown.
    public var freeSize: Int?, freeInodes: Int?
    /// Problems to fix, one sentence each.
    public var warnings: [String]
}

extension CacheCondition {
    init(of cache: DiskCache) throws(WebImageError) {
        let (folder, configuration) = (cache.folder, cache.configuration)
        (id, freeSize, warnings) = (folder.id, cache.account.freeSize, cache.warnings)
        fileSystem = Self.name(ofFileSystem: clinux_fs_magic(folder.descriptor))
        var facts = statvfs()
        // File systems without an inode table report 0 of 0.
        freeInodes =
            fstatvfs(folder.descriptor, &facts) == 0 && facts.f_files > 0 ? Int(clamping: facts.f_favail) : nil
        hasUnnamedFiles =
            folder.open(".prefetch", clinux_tmpfile_flags(), 0o600) != nil && configuration.usesUnnamedFiles == .auto
        let (one, two) = (".prefetch/\(TemporaryFiles.name())", ".prefetch/\(TemporaryFiles.name())")
        guard let file = folder.open(one, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600) else {
            throw folder.fault("write")
        }
        defer {
            folder.removeName(one)
            folder.removeName(two)
        }
        hasExtendedAttributes =
            ImageRecords.set(ImageRecords.attribute, [0], of: file.descriptor) == 0
            && configuration.usesExtendedAttributes == .auto
        hasHardLinks = linkat(folder.descriptor, one, folder.descriptor, two, 0) == 0
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
