import Glibc
import TestSupport
import Testing

@testable import Prefetch
@testable import WebImage

@Suite("Files of results", .timeLimit(.minutes(5)))
struct OutputFileTests {
    private let folder = TemporaryDirectory()

    private func fails(_ kind: PrefetchError.Kind, _ says: String, _ body: () throws -> Void) {
        #expect {
            try body()
        } throws: { error in
            let error = error as? PrefetchError
            return error?.kind == kind && error?.message.contains(says) == true && error?.hint.isEmpty == false
        }
    }

    @Test("A file has its name when it is complete, and what had it stays until then")
    func whole() throws {
        folder.write([1], to: "out")
        chmod(folder.path("out"), 0o640)
        do {
            let file = try OutputFile(path: folder.path("out"))
            try file.write([2, 3])
            #expect(folder.read("out") == [1])
        }
        #expect(folder.read("out") == [1])
        let file = try OutputFile(path: folder.path("out"))
        try file.write([2])
        try file.write([3])
        try file.commit()
        #expect(folder.read("out") == [2, 3])
        #expect(folder.contents() == ["out"])
        var status = stat()
        #expect(stat(folder.path("out"), &status) == 0 && status.st_mode & 0o777 == 0o640)
    }

    @Test("A symbolic link stays one, and what it leads to is replaced")
    func link() throws {
        folder.write([1], to: "real")
        #expect(symlink("real", folder.path("link")) == 0)
        let file = try OutputFile(path: folder.path("link"))
        try file.write([9])
        try file.commit()
        #expect(folder.read("real") == [9])
        #expect(folder.contents() == ["link", "real"])
        var status = stat()
        #expect(lstat(folder.path("link"), &status) == 0 && status.st_mode & S_IFMT == S_IFLNK)
    }

    @Test("Where no file can be made it says so at once")
    func refused() {
        fails(.cacheUnavailable, "No such file or directory") { try OutputFile.check(folder.path("none/out")) }
        fails(.cacheUnavailable, "Is a directory") { try OutputFile.check(folder.path) }
        fails(.cacheUnavailable, "Is a directory") { try OutputFile.check(folder.path + "/new/") }
        fails(.cacheUnavailable, "/proc/out") { try OutputFile.check("/proc/out") }
        #expect(folder.contents() == [])
    }

    @Test("What is no file is written to as it is")
    func special() throws {
        let null = try OutputFile(path: "/dev/null")
        try null.write([1])
        try null.commit()
        var status = stat()
        #expect(stat("/dev/null", &status) == 0 && status.st_mode & S_IFMT == S_IFCHR)
        let full = try OutputFile(path: "/dev/full")
        fails(.inputOutput, "No space left") { try full.write([1]) }
        #expect(mkfifo(folder.path("pipe"), 0o600) == 0)
        // Would wait for a reader if it opened it.
        try OutputFile.check(folder.path("pipe"))
    }

    @Test("Unfinished files leave nothing, with and without a name", arguments: [true, false])
    func temporary(isUnnamed: Bool) throws {
        let open = try #require(OpenFolder(folder.path))
        do {
            let file = try #require(TemporaryFile(in: open, isUnnamed: isUnnamed))
            #expect(OpenFile.write([1, 2], to: file.descriptor) == 0)
            #expect(folder.contents().count == (isUnnamed ? 0 : 1))
        }
        #expect(folder.contents() == [])
        folder.write([7], to: "taken")
        do {
            let file = try #require(TemporaryFile(in: open, isUnnamed: isUnnamed))
            #expect(OpenFile.write([1, 2], to: file.descriptor) == 0)
            #expect(file.publish(as: "taken") == EEXIST)
            #expect(file.publish(as: "new") == 0)
        }
        do {
            let file = try #require(TemporaryFile(in: open, isUnnamed: isUnnamed))
            #expect(OpenFile.write([3], to: file.descriptor) == 0)
            #expect(file.publish(replacing: "taken") == 0)
        }
        #expect(folder.read("new") == [1, 2] && folder.read("taken") == [3])
        #expect(folder.contents() == ["new", "taken"])
    }
}
