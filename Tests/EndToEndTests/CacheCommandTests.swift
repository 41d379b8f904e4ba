import Glibc
import Origin
import Prefetch
import TestSupport
import Testing

@testable import WebImage

/// `prefetch-coord cache`, as a user runs it.
@Suite("The commands of the cache", .timeLimit(.minutes(5)))
struct CacheCommandTests: FolderSuite {
    let folder = TemporaryDirectory()
    private var cache: String { folder.path("cache") }

    private let url = "https://example.org/a.png"

    @Test("An image that is put by hand is there, is read back, and goes again")
    func putAndRemove() async throws {
        let bytes = GeneratedImage.png(seed: 3, width: 20, height: 10)
        folder.write(bytes, to: "a.png")
        let put = try await ran(["cache", "import", folder.path("a.png"), "--url", url, "--cache", cache])
        let path = String(put.stdout.dropLast())
        #expect(readFile(path) == bytes)
        #expect(try await ran(["cache", "path", url, "--cache", cache]).stdout == put.stdout)
        #expect(try await ran(["cache", "path", "--missing", url, "--cache", cache]).stdout == "")
        let list = Array("\(url)\n# no\n\nhttps://example.org/b.png\n".utf8)
        let missing = try await ran(["cache", "path", "--missing", "-", "--cache", cache], exits: 66, input: list)
        #expect(missing.stdout == "https://example.org/b.png\n")
        let json = try await ran(
            ["cache", "import", folder.path("a.png"), "--url", url, "--json", "--cache", cache])
        #expect(json.stdout == #"{"v":1,"path":"\#(path)"}"# + "\n")
        // Another image in its place, from a pipe.
        let other = GeneratedImage.jpeg(seed: 4, width: 20, height: 10)
        #expect(
            try await ran(["cache", "import", "-", "--url", url, "--cache", cache], input: other).stdout == put.stdout)
        #expect(readFile(path) == other)
        // A folder that is no cache is not one in which all is well.
        for words in [["ls"], ["ls", "--summary"], ["verify"]] {
            let none = try await ran(["cache"] + words + ["--cache", folder.path], exits: 66)
            #expect(none.stdout == "" && none.stderr.contains("there is no cache in \(folder.path)"), "\(words)")
        }
        chmod(cache, 0o777)
        let open = try await ran(["cache", "import", "-", "--url", url, "--cache", cache], input: other)
        #expect(open.stderr.contains("warning: everybody on this machine can write to"))
        chmod(cache, 0o755)
        let rm = try await ran(["cache", "rm", "-", "--cache", cache], exits: 66, input: list)
        #expect(rm.stderr == "not in the cache: https://example.org/b.png\nremoved 1 image\n")
        #expect(access(path, F_OK) != 0)
    }

    @Test("What is no image, no URL or too large is not stored")
    func refused() async throws {
        folder.write(Array("<html>".utf8), to: "page")
        let page = try await ran(["cache", "import", folder.path("page"), "--url", url, "--cache", cache], exits: 65)
        #expect(page.stderr.contains("is not a complete image"))
        _ = try await ran(["cache", "import", folder.path("page"), "--url", "no url", "--cache", cache], exits: 64)
        _ = try await ran(["cache", "import", folder.path("none"), "--url", url, "--cache", cache], exits: 66)
        let large = try await ran(
            ["cache", "import", folder.path("page"), "--url", url, "--max-size", "3", "--cache", cache], exits: 65)
        #expect(large.stderr.contains("--max-size"))
        for words in [["--url", url, "--from", "files"], [], ["--url", url, "--list", "x"]] {
            _ = try await ran(["cache", "import", folder.path("page"), "--cache", cache] + words, exits: 64)
        }
        for words in [["rm"], ["rm", url, "--all"], ["rm", url, "--yes"], ["rm", url, "--force"]] {
            _ = try await ran(["cache"] + words + ["--cache", cache], exits: 64)
        }
        #expect(try DiskCache(directory: cache).audit.count().images == 0)
        for words in [["rm", url], ["rm", "--all"], ["verify", "--repair"]] {
            _ = try await ran(["cache"] + words + ["--cache", folder.path("nothing")], exits: 66)
            #expect(access(folder.path("nothing"), F_OK) != 0)
        }
    }

    @Test("rm --all removes every image, but not while a batch fetches them")
    func clear() async throws {
        let disk = try DiskCache(directory: cache)
        for name in ["a", "b"] {
            try disk.images.store(
                ImageBody([1]), for: CacheKey(name),
                record: CacheRecord(level: .none, format: .unknown, length: 1, digest: nil, storedAt: 1))
        }
        var busy: CacheProtection? = try CacheProtection(disk)
        try busy?.set(since: Double(time(nil)) - 60)
        let held = try await ran(["cache", "rm", "--all", "--cache", cache], exits: 75)
        #expect(held.stderr.contains("--force"))
        #expect(try disk.audit.count().images == 2)
        let asked = try await ran(["cache", "rm", "--all", "--force", "--cache", cache], exits: 78)
        #expect(asked.stderr.contains("remove 2 images, 2 B, 8.2 kB on disk, everything in \(cache); standard input"))
        #expect(try disk.audit.count().images == 2)
        let cleared = try await ran(["cache", "rm", "--all", "--force", "--yes", "--cache", cache])
        #expect(cleared.stderr == "removed 2 images\n")
        busy = nil
        #expect(try await ran(["cache", "rm", "--all", "--cache", cache]).stderr == "removed 0 images\n")
    }

    @Test("verify names what is damaged or foreign, --repair moves it aside, and a run fetches it again")
    func repair() async throws {
        let origin = try OriginServer()
        let urls = (0..<4).map { origin.url("/\($0).png") }
        for index in 0..<4 {
            origin.route(
                "/\(index).png", OriginResponse(body: GeneratedImage.png(seed: UInt64(index), width: 9, height: 9)))
        }
        folder.write(Array(urls.map { $0 + "\n" }.joined().utf8), to: "urls.txt")
        let run = ["run", folder.path("urls.txt"), "--cache", cache, "-n", "1", "-q", "--allow-net", "127.0.0.0/8"]
        _ = try await ran(run)
        let disk = try DiskCache(directory: cache)
        let paths = urls.map { disk.images.path(of: CacheKey($0)) }
        // Cut short; other bytes of the same length; a link in its place; the image of another.
        #expect(chmod(paths[0], 0o644) == 0 && truncate(paths[0], 9) == 0)
        #expect(chmod(paths[1], 0o644) == 0)
        let file = try #require(fopen(paths[1], "r+"))
        fseek(file, 40, SEEK_SET)
        fputc(0x55, file)
        fclose(file)
        #expect(unlink(paths[2]) == 0 && symlink("/etc/hostname", paths[2]) == 0)
        #expect(rename(paths[3], paths[3] + ".x") == 0)
        let verify = try await ran(["cache", "verify", "--json", "--cache", cache], exits: 1)
        #expect(verify.stdout.hasPrefix(#"{"v":1,"checked":3,"damaged":["#))
        for path in paths[..<3] { #expect(verify.stdout.contains("\"\(path)\""), "\(path)") }
        #expect(verify.stdout.contains(#""foreign":["\#(paths[3]).x"]"#))
        for jobs in ["1", "3", "256"] {
            let same = try await ran(["cache", "verify", "--json", "--jobs", jobs, "--cache", cache], exits: 1)
            #expect(same.stdout == verify.stdout)
        }
        for jobs in ["0", "257", "x"] {
            _ = try await ran(["cache", "verify", "--jobs", jobs, "--cache", cache], exits: 64)
        }
        let repaired = try await ran(["cache", "verify", "--repair", "--cache", cache], exits: 1)
        #expect(repaired.stdout.contains("damaged: \(paths[0]): 9 bytes, its record says"), "\(repaired.stdout)")
        #expect(repaired.stdout.hasSuffix("3 files, 3 damaged, 1 foreign, 4 moved aside\n"), "\(repaired.stdout)")
        _ = try await ran(["cache", "verify", "--repair", "--cache", cache])
        let before = origin.requestCount()
        _ = try await ran(run)
        #expect(origin.requestCount() == before + 4)
        #expect(try await ran(["cache", "verify", "--cache", cache]).stdout == "4 files, 0 damaged\n")
    }

    @Test("submit to a folder that is no cache yet makes it one")
    func submitToNew() async throws {
        folder.write(Array("https://example.org/a.png\n".utf8), to: "urls.txt")
        let submit = try await ran(["submit", folder.path("urls.txt"), "--cache", cache])
        #expect(submit.stdout.hasPrefix("urls-"))
        #expect(try await ran(["status", "--json", "--cache", cache]).stdout.contains(#""total":1"#))
    }
}
