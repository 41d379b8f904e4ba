import Glibc
import Origin
import TestSupport
import Testing

@testable import WebImage

@Suite("Equal bytes under different URLs", .timeLimit(.minutes(1)))
struct DuplicateImagesTests {
    private func fill(_ cache: DiskCache) throws {
        for (name, byte) in [("a", 1), ("b", 1), ("c", 2), ("d", 1), ("e", 3), ("f", 3)] as [(String, UInt8)] {
            let bytes = [UInt8](repeating: byte, count: byte == 1 ? 200_000 : 50_000)
            var known = record(bytes)
            // One whose digest has to be computed.
            if name == "f" { known.digest = nil }
            try cache.store(ImageBody(bytes), for: CacheKey(name), record: known)
        }
    }

    @Test("They are found by their digests, the largest group first")
    func found() throws {
        let directory = TemporaryDirectory()
        let cache = try DiskCache(directory: directory.path)
        try fill(cache)
        damage(directory.path(CacheKey("c").path), length: 7)
        let groups = try cache.duplicates { path, _ in Issue.record("\(path)") }
        #expect(groups.map(\.size) == [200_000, 50_000])
        #expect(
            groups.map { Set($0.keys) } == [
                Set(["a", "b", "d"].map { CacheKey($0) }), Set(["e", "f"].map { CacheKey($0) }),
            ])
    }

    @Test("Where blocks cannot be shared, that is said")
    func refused() throws {
        // tmpfs never shares.
        let directory = TemporaryDirectory(in: "/dev/shm")
        let cache = try DiskCache(directory: directory.path)
        try fill(cache)
        let groups = try cache.duplicates { _, _ in }
        let error = #expect(throws: WebImageError.self) { try cache.shareBlocks(of: groups[0]) }
        #expect(error?.code == .localFault && error?.message.contains("Btrfs") == true)
    }

    @Test(
        "Btrfs and XFS share the blocks, and every image stays whole", .enabled(if: LoopFileSystem.isPermitted),
        arguments: ["btrfs", "xfs"])
    func shared(kind: String) throws {
        guard let volume = LoopFileSystem(kind, megabytes: 320) else {
            // No mkfs of this kind here.
            return
        }
        let cache = try DiskCache(directory: "\(volume.path)/cache")
        try fill(cache)
        try cache.sync()
        let before = volume.usedBytes
        let groups = try cache.duplicates { _, _ in }
        let shared = try groups.reduce(0) { try $0 + cache.shareBlocks(of: $1) }
        #expect(shared == 2 * 200_000 + 50_000)
        try cache.sync()
        var damaged = 0
        #expect(try cache.verify(report: { if $0.isDamaged { damaged += 1 } }) == 6)
        #expect(damaged == 0)
        // Btrfs frees what nobody has any more with its next commit.
        volume.settle()
        #expect(volume.usedBytes < before, "\(volume.usedBytes) of \(before)")
    }
}
