import Glibc
import TestSupport
import Testing

@testable import Prefetch

@Suite("The place of shards", .timeLimit(.minutes(5)))
struct ShardFolderTests {
    private let directory = TemporaryDirectory()

    private func fails(_ kind: PrefetchError.Kind, _ body: () throws -> Void) {
        #expect {
            try body()
        } throws: { error in (error as? PrefetchError)?.kind == kind }
    }

    @Test("What is put is there whole, listed, read and deleted; nothing is left of what was not put")
    func whole() throws {
        let folder = try ShardFolder.make(directory.path("a/b"))
        try folder.checkAccess()
        let file = try folder.newFile("00000.tar")
        try folder.write([1, 2], to: file, "00000.tar")
        #expect(folder.names().filter { !$0.hasPrefix(".") } == [])
        #expect(folder.size(of: "00000.tar") == nil && folder.bytes(of: "00000.tar", most: 9) == nil)
        try folder.put(file, as: "00000.tar", replaces: false)
        try folder.put([3], as: ".mark", replaces: false)
        _ = try folder.newFile("never")
        #expect(folder.names().sorted() == [".", "..", ".mark", "00000.tar"])
        #expect(folder.size(of: "00000.tar") == 2 && folder.bytes(of: "00000.tar", most: 9) == [1, 2])
        #expect(folder.bytes(of: "00000.tar", most: 1) == [1] && folder.has("00000.tar", sameAs: file))
        let open = try #require(folder.file("00000.tar"))
        folder.delete("00000.tar")
        folder.delete("00000.tar")
        close(open)
        #expect(folder.names().sorted() == [".", "..", ".mark"] && !folder.has("00000.tar", sameAs: file))
    }

    @Test("Another file is replaced only if that is wanted; a place that cannot be written, or is none, is refused")
    func taken() throws {
        let folder = try ShardFolder.make(directory.path("out"))
        directory.write([9], to: "out/00000.tar")
        fails(.cacheUnavailable) { try folder.put([1], as: "00000.tar", replaces: false) }
        #expect(directory.read("out/00000.tar") == [9])
        try folder.put([1], as: "00000.tar", replaces: true)
        #expect(directory.read("out/00000.tar") == [1] && directory.contents() == ["out/", "out/00000.tar"])
        fails(.inputOutput) { try folder.put([1], as: "none/00000.tar", replaces: true) }
        directory.write([1], to: "file")
        fails(.cacheUnavailable) { _ = try ShardFolder.make(directory.path("file")) }
        #expect(ShardFolder(directory.path("nothing")) == nil)
    }
}
