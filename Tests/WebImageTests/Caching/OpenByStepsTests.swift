import CLinux
import Glibc
import TestSupport
import Testing

@Suite("Opening without openat2", .timeLimit(.minutes(5)))
struct OpenByStepsTests {
    /// O_PATH, which the Glibc module leaves out.
    private static let path: Int32 = 0o10000000

    private typealias Open = (Int32, UnsafePointer<CChar>, Int32, mode_t) -> Int32

    /// What an open comes to: the error, or what was opened.
    private func outcome(_ open: Open, _ folder: Int32, _ path: String, _ flags: Int32) -> String {
        let file = open(folder, path, flags, 0o600)
        guard file >= 0 else { return String(cString: strerror(errno)) }
        defer { close(file) }
        var status = stat()
        fstat(file, &status)
        let isNew = status.st_mode & S_IFMT == S_IFREG && status.st_nlink == 0
        return isNew ? "an unnamed file" : "inode \(status.st_ino)"
    }

    @Test("It opens what openat2 opens, and refuses what it refuses, for the same reason")
    func sameAsTheCall() throws {
        let directory = TemporaryDirectory()
        func path(_ name: String) -> String { directory.path(name) }
        for name in ["a", "a/b", "out"] { #expect(mkdir(path(name), 0o700) == 0) }
        directory.write([1], to: "a/b/file")
        directory.write([2], to: "out/file")
        for (target, name) in [
            ("../out", "a/outside"), ("b", "a/inside"), ("/", "a/root"), ("file", "a/b/link"),
            ("nowhere", "a/dangling"),
        ] {
            #expect(symlink(target, path(name)) == 0)
        }
        #expect(mkfifo(path("a/fifo"), 0o600) == 0)
        let folder = clinux_open(path("a"), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
        defer { close(folder) }
        #expect(folder >= 0)
        let paths = [
            ".", "b", "b/", "b//file", "b/file", "b/file/", "b/file/x", "b/link", "b/link/", "./b/./file", "inside",
            "inside/file",
            "inside/", "outside/file", "outside", "root/etc/passwd", "dangling", "fifo", "missing", "missing/x", "",
            "/", "/etc",
            "..", "../out/file", String(repeating: "n", count: 256), String(repeating: "n", count: 255),
        ]
        let ways: [Int32] = [
            O_RDONLY | O_NONBLOCK, O_RDWR | O_NONBLOCK, Self.path, clinux_directory_flags(), O_RDONLY | O_DIRECTORY,
            clinux_tmpfile_flags(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK,
        ]
        for flags in ways {
            for path in paths {
                let expected = outcome(clinux_open_beneath, folder, path, flags)
                #expect(outcome(clinux_open_by_steps, folder, path, flags) == expected, "\(path) \(flags)")
            }
        }
        // openat2 follows it where it stays below; nobody asks for one.
        #expect(outcome(clinux_open_by_steps, folder, "b/../b/file", O_RDONLY) == String(cString: strerror(EXDEV)))
        // What is made is made in the folder, and never through a link.
        let flags = O_RDWR | O_CREAT | O_EXCL
        #expect(outcome(clinux_open_by_steps, folder, "b/new", flags).hasPrefix("inode"))
        #expect(outcome(clinux_open_by_steps, folder, "b/new", flags) == String(cString: strerror(EEXIST)))
        #expect(outcome(clinux_open_by_steps, folder, "dangling", O_RDWR | O_CREAT) == String(cString: strerror(ELOOP)))
        #expect(access(path("a/nowhere"), F_OK) != 0 && access(path("a/b/new"), F_OK) == 0)
    }
}
