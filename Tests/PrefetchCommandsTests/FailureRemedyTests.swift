import Origin
import PrefetchModel
import Testing

@testable import Prefetch
@testable import PrefetchCommands
@testable import Queue
@testable import WebImage

@Suite("What helps against failures")
struct FailureRemedyTests {
    private func remedy(_ outcome: PrefetchOutcome, _ status: Int? = nil, _ detail: String = "no") -> String? {
        FailureRemedy.text(outcome, httpStatus: status, detail: detail)
    }

    @Test("Every cause has a remedy, in one line")
    func all() {
        for outcome in PrefetchOutcome.allCases where outcome.isSkipped && outcome != .unknown {
            let text = remedy(outcome)
            #expect(text?.isEmpty == false && text?.contains("\n") == false, "\(outcome)")
        }
        for status in [401, 403, 404, 407, 410, 418, 429, 451, 500, 503, 206] {
            #expect(remedy(.httpError, status) != nil, "\(status)")
        }
        #expect(remedy(.unknown) == nil && remedy(.httpError, 304) == nil && remedy(.refused, nil, "") == nil)
    }

    @Test(
        "403 has the remedy for what the server wants",
        arguments: [
            ("HTTP 403", "--contact"), (#"HTTP 403 (Basic realm="a")"#, "--user"),
            ("HTTP 403 (cloudflare challenge: cf-mitigated)", "browsers"),
        ])
    func forbidden(detail: String, word: String) {
        #expect(remedy(.httpError, 403, detail)?.contains(word) == true)
    }

    @Test("An empty 202 of a bot wall is no matter of the statuses that are accepted")
    func challenged() {
        let detail = "HTTP 202 (\(AccessDemand.text(status: 202) { _ in [] } ?? ""))"
        #expect(remedy(.httpError, 202, detail)?.contains("browsers") == true)
        #expect(remedy(.httpError, 202, "HTTP 202")?.contains("--accept-status") == true)
    }

    /// By the messages of the rules themselves, of which the remedy is recognised.
    @Test("What refused a URL has its own remedy")
    func refused() throws {
        func header(_ format: ImageFormat, _ width: Int, _ height: Int) -> ImageHeader {
            ImageHeader(format: format, size: PixelSize(width: width, height: height))
        }
        var rules = ImageRules()
        rules.minWidth = 200
        let small = try #require(rules.objection(to: header(.png, 10, 10)))
        let unknown = try #require(rules.objection(to: header(.svg, 0, 0)))
        rules.types = [.png]
        let type = try #require(rules.objection(to: header(.gif, 10, 10)))
        let scheme = #expect(throws: WebImageError.self) { try RequestURL("ftp://h/") }?.message ?? ""
        let address = AddressPolicy().refusal(of: try #require(IPAddress("10.0.0.1")), port: 80) ?? ""
        let port = AddressPolicy().refusal(of: try #require(IPAddress("8.8.8.8")), port: 6379) ?? ""
        let expected = [
            (RobotsTag.message("noai"), "--own-host"), ("robots.txt of h does not allow it", "--robots"),
            ("Content-Type text/html is not accepted", "--accept-type"), (small, "--min-width 1"),
            (unknown, "--min-width 0"),
            (type, "--types"), (scheme, "http and https"), (address, "--allow-net"), (port, "--allow-net"),
        ]
        for (detail, word) in expected {
            #expect(remedy(.refused, nil, detail)?.contains(word) == true, "\(detail)")
        }
    }

    /// By the messages of the limits themselves.
    @Test("What is too large has the remedy for its limit, and no advice to correct the URLs")
    func tooLarge() throws {
        func detail(_ change: (inout ImageCoder.Limits) -> Void) throws -> String {
            var limits = ImageCoder.Limits()
            change(&limits)
            let png = GeneratedImage.png(seed: 1, width: 600, height: 600)
            let error = #expect(throws: WebImageError.self) {
                try png.span.withUnsafeBytes { try ImageCoder(limits: limits).verify($0, level: .decode) }
            }
            #expect(error?.outcome == .tooLarge)
            return try #require(error).message
        }
        let expected = [
            (try detail { $0.maxPixels = 9 }, "--max-pixels"), (try detail { $0.maxMemory = 9 }, "--max-decode-memory"),
            (try detail { ($0.cpuNanoseconds, $0.cpuNanosecondsPerPixel) = (0, 0) }, "--validate structure"),
            (try detail { $0.maxDimension = 9 }, "--validate none"), ("more than 9 bytes", "--max-size"),
        ]
        for (detail, word) in expected { #expect(remedy(.tooLarge, nil, detail)?.contains(word) == true, "\(detail)") }
    }

    private func failure(
        _ host: String, _ outcome: PrefetchOutcome, _ status: Int? = nil, _ detail: String
    ) -> FailureDetail {
        FailureDetail(
            line: 1, url: "http://\(host)/a", outcome: outcome, httpStatus: status, attempts: 1, detail: detail)
    }

    @Test("Causes are counted with their remedy each, hosts with their most frequent cause and each remedy once")
    func counts() {
        let failures =
            (0..<3).map { _ in failure("a", .httpError, 404, "HTTP 404") }
            + (0..<2).map { _ in failure("b", .refused, nil, "robots.txt of b does not allow it") }
            + [failure("a", .timeout, nil, "late"), failure("c", .httpError, 404, "HTTP 404")]
            + [failure("b", .refused, nil, "10.0.0.1 is a private address")]
        var causes = FailureCounts(by: .cause)
        var hosts = FailureCounts(by: .host)
        for failure in failures {
            causes.note(failure)
            hosts.note(failure)
        }
        let lines = causes.lines
        #expect(lines.count == 4 && lines[0].hasPrefix("4   50.0%  httpError 404 -> correct the list"))
        #expect(lines[1].hasPrefix("2   25.0%  refused -> retry without --robots"))
        #expect(lines.contains { $0.hasPrefix("1   12.5%  refused -> open the networks") })
        #expect(
            hosts.lines.prefix(3) == [
                "4   50.0%  a  httpError 404", "3   37.5%  b  refused", "1   12.5%  c  httpError 404",
            ])
        #expect(hosts.lines.count == 5 && hosts.lines[3].hasPrefix("httpError 404 -> correct the list"))
        #expect(hosts.lines[4].hasPrefix("refused -> retry without --robots"))
        let json = hosts.json(batch: "x").text
        #expect(json.contains(#"{"host":"a","cause":"httpError","http_status":404,"remedy":"correct the list"#))
    }
}
