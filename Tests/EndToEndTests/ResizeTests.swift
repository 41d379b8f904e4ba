import Origin
import Prefetch
import TestSupport
import Testing
import WebImage

/// Batches that change their images before they store them.
@Suite("Resizing on the command line", .timeLimit(.minutes(5)))
struct ResizeTests: FolderSuite {
    let folder = TemporaryDirectory()
    private let origin: OriginServer
    init() throws {
        origin = try OriginServer()
    }

    private var cache: [String] { ["--cache", folder.path("cache")] }

    private func run(_ options: [String], exits code: Int32 = 0) async throws -> String {
        let base = ["--allow-net", "127.0.0.0/8", "-n", "1", "-q", "--json"]
        return try await ran(["run", folder.path("urls.txt")] + cache + base + options, exits: code).stdout
    }

    /// Format, width, height and frames of each line.
    private func images() async throws -> [String] {
        let lines = try await ran(["export", "--format", "csv"] + cache).stdout.split(separator: "\r\n").dropFirst()
        return lines.map { line in
            let cells = line.split(separator: ",", omittingEmptySubsequences: false)
            return [6, 7, 8, 11].map { cells[$0].filter { $0 != "\"" } }.joined(separator: " ")
        }
    }

    @Test("Images are stored as asked for, under keys of their own")
    func stored() async throws {
        origin.route("/a.jpg", OriginResponse(body: GeneratedImage.jpeg(seed: 1, width: 400, height: 300)))
        origin.route("/b.png", OriginResponse(body: GeneratedImage.png(seed: 2, width: 90, height: 200, color: .rgba)))
        origin.route("/c.gif", OriginResponse(body: GeneratedImage.gif(seed: 3, width: 90, height: 90, frames: 2)))
        origin.route("/d.webp", OriginResponse(body: GeneratedImage.webp(seed: 4, width: 300, height: 30)))
        let list = ["/a.jpg", "/b.png", "/c.gif", "/d.webp"].map { origin.url($0) + "\n" }.joined()
        folder.write(Array(list.utf8), to: "urls.txt")

        let first = try await run(["--resize", "100x100"])
        #expect(first.contains(#""downloaded":4"#) && first.contains(#""skipped":0"#), "\(first)")
        #expect(try await images() == ["jpeg 100 75 1", "png 45 100 1", "gif 90 90 2", "webp 100 10 1"])
        #expect(try await run(["--resize", "100x100"]).contains(#""hit":4"#))
        #expect(origin.requestCount() == 4)

        let cover = try await run(
            ["--resize", "64", "--fit", "cover", "--image-format", "jpeg", "--keep-original", "--strip"])
        #expect(cover.contains(#""downloaded":4"#))
        #expect(try await images() == ["jpeg 64 64 1", "jpeg 64 64 1", "gif 90 90 2", "jpeg 64 30 1"])
        #expect(origin.requestCount() == 8)

        // The originals are there now: nothing is requested any more.
        let pad = try await run([
            "--resize", "50x60", "--fit", "pad", "--upscale", "--options", "transformAnimatedImage",
        ])
        #expect(pad.contains(#""hit":4"#), "\(pad)")
        #expect(try await images() == ["jpeg 50 60 1", "png 50 60 1", "jpeg 50 60 1", "webp 50 60 1"])
        #expect(try await run([]).contains(#""hit":4"#))
        #expect(try await images() == ["jpeg 400 300 1", "png 90 200 1", "gif 90 90 2", "webp 300 30 1"])
        #expect(origin.requestCount() == 8)

        // Whether animations are changed is in the key: neither batch is given the other's file.
        for (options, gif) in [(["--options", "transformAnimatedImage"], "jpeg 90 90 1"), ([], "gif 90 90 2")] {
            #expect(try await run(["--resize", "100x100"] + options).contains(#""hit":4"#))
            #expect(try await images() == ["jpeg 100 75 1", "png 45 100 1", gif, "webp 100 10 1"])
        }
        #expect(origin.requestCount() == 8)
    }

    @Test("What cannot be is a usage error with a hint")
    func refused() async throws {
        folder.write(Array("http://h/\n".utf8), to: "urls.txt")
        for (options, text) in [
            (
                ["--resize", "100", "--fit", "cove"],
                "is inside, shorter, cover or pad, not 'cove'; did you mean 'cover'?"
            ),
            (["--resize", "0x100"], "is not a valid value of --resize"),
            (["--fit", "cover"], "add --resize"), (["--image-format", "jpg"], "did you mean 'jpeg'?"),
            (["--image-format", "avif"], "jpeg, png, webp or keep"), (["--quality", "101"], "1 to 100"),
            (["--keep-original"], "changes nothing"),
        ] {
            let result = try await ran(["run", folder.path("urls.txt")] + cache + options, exits: 64)
            #expect(result.stderr.contains(text), "\(options): \(result.stderr)")
        }
    }
}
