import Foundation
import Origin
import TestSupport
import Testing

/// Failures beyond the bound of details, with the built programs.
@Suite("Failures without details", .timeLimit(.minutes(5)))
struct FailureBoundTests: CommandSuite {
    @Test(
        "Beyond the details that are kept each failure keeps its status, tries and time, in every page and every output"
    )
    func beyond() async throws {
        let origin = try OriginServer()
        origin.setFallback { request in OriginResponse(status: request.path.hasPrefix("/5") ? 500 : 404) }
        origin.route("/good.png", OriginResponse(body: GeneratedImage.png(seed: 1, width: 8, height: 8)))
        let urls = (1...6).map { origin.url("/\($0).png") } + [origin.url("/good.png")]
        let b = try await RemoteBatch()
        let list = b.folder.path("urls.txt")
        let at = ["--redis", b.redis.url, "--cache", b.folder.path("cache")]
        try await b.submit(urls, as: "urls", ["--tries", "2"])
        try await b.keepDetails(2, of: "urls")
        for worker in try await b.workers(1) { #expect(await worker.wait() == .exited(0), "\(worker.stderr)") }
        let manifest = try await ran(["export", "--format", "jsonl"] + at).stdout.split(separator: "\n")
        #expect(manifest.count == 7)
        for (line, text) in zip(1..., manifest) {
            let object = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
            let status = line == 7 ? nil : line == 5 ? 500 : 404
            #expect(object["http_status"] as? Int == status, "\(text)")
            #expect(object["tries"] as? Int == (line == 7 ? nil : line == 5 ? 2 : 1), "\(text)")
            let ended = (object["ended"] as? String).flatMap { ISO8601DateFormatter().date(from: $0) }
            #expect(
                (ended == nil) == (line == 7) && (ended.map { abs($0.timeIntervalSinceNow) < 600 } ?? true), "\(text)")
        }
        let table = try await ran(["export", "--format", "csv"] + at).stdout.components(separatedBy: "\r\n")
        #expect(
            table[0]
                == "line,url,outcome,path,bytes,sha256,format,width,height,level,orientation,frames,alpha,color_space,http_status,tries,ended,host"
        )
        #expect(table[5].contains(",,,,,,,,,,,500,2,\"20"), "\(table)")
        #expect(table[7].hasSuffix(",8,8,\"decode\",1,1,false,\"rgb\",,,,"), "\(table)")
        let failures = try await ran(["failures"] + at).stdout.split(separator: "\n")
        #expect(failures.count == 6 && failures.count { $0.contains("no detail kept") } == 4, "\(failures)")
        #expect(failures.count { $0.contains("httpError 404") } == 5 && failures[4].hasSuffix(", 2 tries"))
        let causes = try await ran(["failures", "--by", "cause"] + at)
        #expect(causes.stderr.contains("4 of 6 have no detail"), "\(causes.stdout)\(causes.stderr)")
        for url in urls.dropLast() {
            let why = try await ran(["why", url] + at)
            #expect(why.stdout.contains(url.hasSuffix("5.png") ? "500" : "404"), "\(why.stdout)")
        }
        let page = try await ran(["export", "--format", "html"] + at).stdout
        for line in 1...6 { #expect(page.contains("/\(line).png</bdi>"), "\(line)") }
        _ = try await ran(["fsck"] + at)
        // Where the list is gone, and nobody has kept a copy, a command says so.
        TemporaryDirectory.remove(TemporaryDirectory.stateHome.path + "/prefetch/lists")
        #expect(rename(list, b.folder.path("moved.txt")) == 0)
        let lost = try await ran(["why", urls[4]] + at, exits: 66)
        #expect(lost.stderr.contains("without its list, which cannot be read here"), "\(lost.stderr)")
        #expect(rename(b.folder.path("moved.txt"), list) == 0)
        let found = try await ran(["why", urls[4]] + at)
        #expect(found.stdout.contains("500"), "\(found.stdout)")
    }
}
