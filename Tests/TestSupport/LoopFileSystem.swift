internal import CLinux
internal import Glibc

/// A file system of its own in a file, mounted through a loop device; taken away with the last reference. Needs root's rights.
package final class LoopFileSystem: Sendable {
    /// Where it is mounted.
    package let path: String
    /// The file it is in.
    package let image: String
    private let directory: TemporaryDirectory

    /// Whether this machine lets the tests mount anything at all.
    package static let isPermitted: Bool = {
        guard getuid() == 0, access("/dev/loop-control", R_OK | W_OK) == 0 else { return false }
        let directory = TemporaryDirectory()
        guard mount("tmpfs", directory.path, "tmpfs", 0, "size=64k") == 0 else { return false }
        umount2(directory.path, Int32(MNT_DETACH))
        return true
    }()

    /// Makes and mounts one; nil where this machine has no mkfs or no driver of that kind.
    ///
    /// * `kind`: `ext4`, `xfs`, `btrfs`, `vfat`.
    /// * `options`: for mount(8), as `nouser_xattr`.
    /// * `folder`: where the image file is, which may itself be a small file system.
    package init?(_ kind: String, megabytes: Int, make: String = "", options: String = "", in folder: String = "/tmp") {
        directory = TemporaryDirectory(in: folder)
        path = directory.path("mnt")
        image = directory.path("image")
        let force = kind == "ext4" ? "-F -q" : kind == "vfat" ? "" : kind == "xfs" ? "-q -f" : "-q -f"
        let more = options.isEmpty ? "loop" : "loop,\(options)"
        mkdir(path, 0o777)
        guard
            Self.shell(
                "command -v mkfs.\(kind) >/dev/null && truncate -s \(megabytes)M '\(image)' "
                    + "&& mkfs.\(kind) \(force) \(make) '\(image)' >/dev/null 2>&1 "
                    + "&& mount -t \(kind) -o \(more) '\(image)' '\(path)' 2>/dev/null")
        else { return nil }
    }

    deinit { umount2(path, Int32(MNT_DETACH)) }

    /// Bytes that are taken.
    package var usedBytes: Int {
        var facts = statvfs()
        guard statvfs(path, &facts) == 0 else { return -1 }
        return Int(facts.f_blocks - facts.f_bfree) * Int(facts.f_frsize)
    }

    /// Writes everything out.
    package func settle() {
        _ = Self.shell(
            "sync -f '\(path)'; command -v btrfs >/dev/null && btrfs filesystem sync '\(path)' >/dev/null 2>&1")
    }

    /// Changes how it is mounted.
    @discardableResult package func remount(_ options: String) -> Bool {
        Self.shell("mount -o remount,\(options) '\(path)' 2>/dev/null")
    }

    /// Runs a line of shell; true where it ended with 0.
    @discardableResult package static func shell(_ line: String) -> Bool { Glibc.system(line) == 0 }
}
