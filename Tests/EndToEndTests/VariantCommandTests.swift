import Origin
import TestSupport
import Testing

@testable import WebImage

/// What becomes of resized images in retries, exports, `why` and checks.
@Suite("Variants of a batch in every command", .timeLimit(.minutes(5)))
struct VariantCommandTests: FolderSuite {
    let folder = TemporaryDirectory()
    private let origin: OriginServer
    private var at: [String] { ["--cache", folder.path("cache")] }
    private var net: [String] { ["--allow-net", "127.0.0.0/8", "-q", "-n", "1"] + at }

    init() throws {
        origin = try OriginServer()
        origin.setFallback { _ in OriginResponse(status: 404) }
    }

    private func list(_ paths: [String]) -> String {
        folder.write(Array(paths.map { origin.url($0) + "\n" }.joined().utf8), to: "urls.txt")
        return folder.path("urls.txt")
    }

    /// Of a manifest's lines: outcome, format and size.
    private func lines(_ manifest: String) -> [String] {
        manifest.split(separator: "\n").map { line in
            ["outcome", "format", "width", "height"].map { name in
                let parts = line.split(separator: "\"\(name)\":", maxSplits: 1)
                return parts.count < 2 ? "-" : String(parts[1].prefix { $0 != "," && $0 != "}" }.filter { $0 != "\"" })
            }.joined(separator: " ")
        }
    }

    private func manifest(_ more: [String] = []) async throws -> [String] {
        lines(try await ran(["export", "--format", "jsonl"] + more + at).stdout)
    }

    @Test("archives, folders, why and fsck have the resized images")
    func views() async throws {
        origin.route("/a.jpg", OriginResponse(body: GeneratedImage.jpeg(seed: 1, width: 400, height: 300)))
        origin.route("/b.png", OriginResponse(body: GeneratedImage.png(seed: 2, width: 90, height: 120, color: .rgba)))
        let file = list(["/a.jpg", "/b.png", "/none"])
        try await ran(["run", file, "--resize", "40x40", "--fit", "pad", "--keep-original"] + net, exits: 3)
        #expect(try await manifest().prefix(2) == ["downloaded jpeg 40 40", "downloaded png 40 40"])
        try await ran(["export", "--format", "files", "--out", folder.path("out")] + at, says: "2 images")
        let written = try #require(folder.read("out/000002.png"))
        let padded = try written.withUnsafeBytes { bytes throws(WebImageError) in try ImageCoder().decode(bytes) }
        #expect((padded.width, padded.height, padded.hasAlpha) == (40, 40, true))
        #expect(padded.pixels.prefix(4) == [0, 0, 0, 0])
        try await ran(["export", "--format", "webdataset", "--out", folder.path("shards")] + at, says: "2")
        let why = try await ran(["why", origin.url("/a.jpg"), "--json"] + at)
        #expect(why.stdout.contains(#""width":40,"height":40"#), "\(why.stdout)")
        try await ran(["fsck"] + at)
        // A batch without --resize comes to the originals, and so does why.
        try await ran(["run", file] + net, exits: 3)
        let original = try await ran(["why", origin.url("/a.jpg"), "--json"] + at)
        #expect(original.stdout.contains(#""width":400,"height":300"#), "\(original.stdout)")
    }

    @Test("retry takes over the size, or has another one; each line is exported in its own")
    func retry() async throws {
        origin.route("/a.png", OriginResponse(body: GeneratedImage.png(seed: 6, width: 80, height: 80)))
        let file = list(["/a.png", "/b.png", "/c.png"])
        try await ran(["run", file, "--resize", "40x40"] + net, exits: 3)
        origin.route("/b.png", OriginResponse(body: GeneratedImage.png(seed: 7, width: 80, height: 80)))
        try await ran(["retry"] + net, exits: 3)
        origin.route("/c.png", OriginResponse(body: GeneratedImage.png(seed: 8, width: 80, height: 80)))
        try await ran(["retry", "--resize", "10x10"] + net)
        #expect(try await manifest() == ["downloaded png 40 40", "downloaded png 40 40", "downloaded png 10 10"])
    }

    @Test("what would take too much memory ends as tooLarge, with the figure")
    func memory() async throws {
        origin.route("/a.png", OriginResponse(body: GeneratedImage.png(seed: 9, width: 8, height: 8)))
        try await ran(["run", list(["/a.png"]), "--resize", "20000x20000", "--fit", "pad"] + net, exits: 3)
        let failures = try await ran(["failures"] + at)
        #expect(failures.stdout.contains("to resize 8 x 8 pixels to 20000 x 20000 takes"), "\(failures.stdout)")
    }

    @Test(
        "what is not asked rightly is a usage error with a suggestion",
        arguments: [
            (
                ["--resize", "40x40", "--fit", "covr"],
                "--fit is inside, shorter, cover or pad, not 'covr'; did you mean 'cover'?"
            ),
            (["--resize", "40x40", "--fit", "contain"], "--fit is inside, shorter, cover or pad, not 'contain'"),
            (["--resize", "40x40", "--image-format", "wepb"], "did you mean 'webp'?"),
            (["--resize", "40x40x40"], "256x192"), (["--resize", "big"], "256x192"),
            (["--image-size", "256"], "--resize WXH"),
            (["--encode-format", "jpg"], "--image-format FORMAT: store images as jpeg"),
        ])
    func usage(words: [String], says: String) async throws {
        try await ran(["run", list(["/a"])] + words + net, exits: 64, says: says)
    }
}
