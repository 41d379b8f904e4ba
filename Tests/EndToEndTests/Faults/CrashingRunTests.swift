import Foundation
import Glibc
import Origin
import TestSupport
import Testing

@Suite("Runs whose workers crash", .timeLimit(.minutes(10)))
struct CrashingRunTests {
    private let folder = TemporaryDirectory()

    /// A run of two workers on these paths; only in the workers, and in what decodes for them, the library crashes.
    private func run(
        _ urls: [String], crashing place: String, sandbox: String = "off"
    ) async throws -> ChildProcess {
        let source = URL(filePath: #filePath).appending(path: "../../../CrashingDecoder/crashing_decoder.c")
            .standardized
        let library = folder.path("crashing.so")
        let compiler = try await ChildProcess(
            "/usr/bin/env",
            [
                "clang", "-std=c17", "-O1", "-shared", "-fPIC", "-DCRASHING=\"\(place)\"", "-o", library,
                source.path(), "-ldl",
            ])
        try #require(await compiler.wait() == .exited(0), "\(compiler.stderr)")
        folder.write(Array(urls.map { $0 + "\n" }.joined().utf8), to: "urls.txt")
        return try await ChildProcess(
            builtProduct("prefetch-coord"),
            [
                "run", folder.path("urls.txt"), "--cache", folder.path("cache"), "-n", "2", "--allow-net",
                "127.0.0.0/8", "--validate", "decode", "--json", "--sandbox", sandbox,
            ],
            environment: ["LD_PRELOAD": library, "CRASHING": place])
    }

    /// With an empty DNL as its first segment: libjpeg has to decide on it.
    private static func bad(height: Int = 8) -> [UInt8] {
        var jpeg = GeneratedImage.jpeg(seed: 2, width: 777, height: height)
        jpeg.insert(contentsOf: [0xFF, 0xDC, 0, 2], at: 2)
        return jpeg
    }

    private func deaths(_ run: ChildProcess) -> Int {
        run.stderr.components(separatedBy: "ended by signal 11").count - 1
    }

    @Test("Images that crash the decoder end as poison after three deaths each; the run ends, and all others are there")
    func images() async throws {
        let origin = try OriginServer()
        let good = GeneratedImage.jpeg(seed: 1, width: 60, height: 40)
        origin.setFallback { _ in OriginResponse(body: good) }
        let bad = [20, 101, 150].map { "/\($0)-bad.jpg" }
        for path in bad {
            origin.route(path, OriginResponse(body: Self.bad()))
        }
        var paths = (0..<200).map { "/\($0).jpg" }
        for (offset, path) in bad.enumerated() { paths.insert(path, at: [20, 101, 150][offset]) }
        let run = try await run(paths.map { origin.url($0) }, crashing: "image")
        #expect(await run.wait() == .exited(3), "\(run.stderr)")
        // A death with two of them in the decoder counts for both.
        #expect((3...9).contains(deaths(run)), "\(run.stderr)")
        let object = try #require(try JSONSerialization.jsonObject(with: Data(run.stdout.utf8)) as? [String: Any])
        let counts = try #require(object["outcomes"] as? [String: Any], "\(run.stdout)")
        func count(_ name: String) -> Int { counts[name] as? Int ?? 0 }
        #expect(count("poison") == 3 && count("downloaded") + count("hit") == 200, "\(run.stdout)")
    }

    @Test("Thirty images that crash a decoder of the sandbox end as poison; no worker dies, and all others are there")
    func sandbox() async throws {
        let origin = try OriginServer()
        let good = GeneratedImage.jpeg(seed: 1, width: 60, height: 40)
        let webp = GeneratedImage.webp(seed: 1, width: 60, height: 40)
        origin.setFallback { request in OriginResponse(body: request.path.hasSuffix("webp") ? webp : good) }
        var paths = (0..<1000).map { $0 % 4 == 0 ? "/\($0).webp" : "/\($0).jpg" }
        for number in 0..<30 {
            origin.route("/bad-\(number).jpg", OriginResponse(body: Self.bad()))
            paths.insert("/bad-\(number).jpg", at: 31 * number)
        }
        let run = try await run(paths.map { origin.url($0) }, crashing: "image", sandbox: "on")
        #expect(await run.wait() == .exited(3), "\(run.stderr)")
        #expect(!run.stderr.contains("ended by signal"), "\(run.stderr)")
        let object = try #require(try JSONSerialization.jsonObject(with: Data(run.stdout.utf8)) as? [String: Any])
        let counts = try #require(object["outcomes"] as? [String: Any], "\(run.stdout)")
        #expect(counts["poison"] as? Int == 30 && counts["downloaded"] as? Int == 1000, "\(run.stdout)")
        // None was fetched twice.
        #expect(origin.requestCount() == 1030)
    }

    /// The worker of a run whose decoder has had processor time, and is not one of these.
    private func decodes(_ run: ChildProcess, besides killed: Set<Int32>) -> Int32? {
        func stat(_ pid: some CustomStringConvertible) -> (isDecoder: Bool, parent: Int32, ticks: Int) {
            let text = (try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8)) ?? ""
            // State, parent …, the 14th and 15th of all: time in the program and in the kernel.
            let fields = (text.split(separator: ")").last?.split(separator: " ") ?? []).map { Int($0) ?? 0 }
            guard fields.count > 12 else { return (false, 0, 0) }
            return (text.contains("(prefetch-codec)"), Int32(fields[1]), fields[11] + fields[12])
        }
        let processes = (try? FileManager.default.contentsOfDirectory(atPath: "/proc"))?.filter { Int32($0) != nil }
        return (processes ?? []).lazy.map { stat($0) }.filter { $0.isDecoder && $0.ticks >= 3 }.map(\.parent)
            .first { !killed.contains($0) && stat($0).parent == run.pid }
    }

    @Test("An image that is in the sandbox while its workers are killed is not to blame")
    func killed() async throws {
        let origin = try OriginServer()
        // Its decoder may take seconds.
        let bad = Self.bad(height: 1500)
        origin.setFallback { _ in OriginResponse(body: bad) }
        let run = try await run([origin.url("/1.jpg")], crashing: "hang", sandbox: "on")
        var killed: Set<Int32> = []
        while killed.count < 4 {
            var found: Int32?
            try await until {
                found = decodes(run, besides: killed)
                return found != nil || !run.isRunning
            }
            let worker = try #require(found, "\(run.stderr)")
            kill(worker, SIGKILL)
            killed.insert(worker)
        }
        #expect(await run.wait() == .exited(3), "\(run.stderr)")
        #expect(run.stderr.components(separatedBy: "ended by signal 9").count - 1 == 4, "\(run.stderr)")
        #expect(run.stdout.contains("\"tooLarge\":1,") && run.stdout.contains("\"poison\":0,"), "\(run.stdout)")
    }

    @Test("Workers that crash outside of a decoder end the run with 70: that their jobs went back is no progress")
    func transfers() async throws {
        let origin = try OriginServer()
        let run = try await run((0..<50).map { origin.url("/\($0).jpg") }, crashing: "transfer")
        #expect(await run.wait() == .exited(70), "\(run.stderr)")
        #expect(run.stderr.contains("workers ended"))
        // The other worker may die beside the last.
        #expect((5...21).contains(deaths(run)), "\(run.stderr)")
        #expect(origin.requestCount() == 0)
    }
}
