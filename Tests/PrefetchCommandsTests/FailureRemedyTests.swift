import Origin
import PrefetchModel
import Testing

@testable import Prefetch
@testable import PrefetchCommands
@testable import Queue
@testable import WebImage

@Suite("What helps against failures")
struct FailureRemedyTests {
    private static let browsers =
        "these sites let only browsers in: ask their owners, and say who you are with --contact"
    private static let credentials =
        "give credentials that these servers accept: --user NAME:PASSWORD, --bearer TOKEN or --netrc FILE"
    private static let caller =
        "say who you are with --contact, or add what they expect with --header 'Referer: …'"
    private static let lapse =
        "correct the list; they are requested again once their blacklist entries lapse (--blacklist-ttl)"
    private static let later = "retry later, or with more --tries"
    private static let programs = "open one of them in a browser: these servers do not serve it to programs"
    private static let authority =
        "name the authority of their certificates with --ca-file; --allow-invalid-ssl accepts any"

    /// Each outcome without a reason, and with each of its reasons.
    private static let table: [(PrefetchOutcome, FailureReason?, String?)] = [
        (.downloaded, nil, nil), (.hit, nil, nil), (.notModified, nil, nil),
        (.blacklisted, nil, "retry, or --retry-failed, requests them before they lapse; blacklist rm takes them off"),
        (.httpError, nil, nil), (.httpError, .browsersOnly, browsers), (.httpError, .credentials, credentials),
        (.httpError, .redirects, "correct the URLs: these redirect more than ten times"),
        (.timeout, nil, "retry; a longer --timeout or --max-time, or fewer transfers (--max-concurrent-downloads)"),
        (.dns, nil, "correct the names, or the resolver (doctor checks it), and retry"),
        (.connect, nil, "retry when the servers are up; a longer --connect-timeout if they are slow"),
        (.tls, nil, authority), (.truncated, nil, "retry"),
        (.badImage, nil, "correct the URLs: the servers send something else, often a page"),
        (.tooLarge, nil, nil), (.tooLarge, .bytes, "retry with a larger --max-size"), (.tooLarge, .expansion, nil),
        (.tooLarge, .pixels, "retry with a larger --max-pixels, of the batch and of its workers"),
        (.tooLarge, .decodeMemory, "retry on workers with a larger --max-decode-memory"),
        (.tooLarge, .decodeTime, "retry with --validate structure, which decodes nothing, if you trust the sites"),
        (.tooLarge, .codecLimit, "retry with --validate none, which checks nothing, if you trust the sites"),
        (.tooLarge, .resizedSide, "retry without --resize"), (.refused, nil, nil),
        (.refused, .closedNetwork, "open the networks, if they are yours: --allow-net ADDRESS, or ADDRESS:PORT"),
        (.refused, .deniedNetwork, nil), (.refused, .queueRedis, nil), (.refused, .workerFilter, nil),
        (.refused, .robots, "retry without --robots, if the sites are yours"),
        (
            .refused, .unreadableRobots,
            "retry when the sites' robots.txt can be read, or without --robots, if they are yours"
        ),
        (
            .refused, .robotsTag,
            "--ignore-robots-tag takes them; --own-host NAME skips all robots rules of a host you own"
        ),
        (.refused, .scheme, "correct the URLs: only http and https are fetched"),
        (.refused, .downgrade, "correct the URLs: these lead from https to http"),
        (.refused, .contentType, nil),
        (.filtered, nil, nil), (.filtered, .urlFilter, nil), (.filtered, .imageType, "retry with other --types"),
        (.filtered, .imageSize, "retry with other rules: --min-size 1"),
        (.filtered, .unknownSize, "retry without rules about sizes: --min-size 0"),
        (.invalidURL, nil, "correct the lines: a URL begins with http:// or https://"),
        (.poison, nil, "report them with their images: their bytes ended decoders or workers"),
        (.cancelled, nil, "retry fetches what was left"), (.notCached, nil, "run the list again without fromCacheOnly"),
        (.mismatch, nil, "correct the SHA-256 in the list, or get the images elsewhere: other bytes are there now"),
        (.unsupported, nil, "--unverifiable keep stores them unverified; doctor names missing libraries"),
        (
            .notStored, nil,
            "repair the cache where failures names a file (cache verify, fsck(8) of its disk), and retry"
        ),
        (.unknown, nil, nil),
    ]

    private static let statuses: [(Int, String?)] = [
        (202, nil), (206, nil), (304, nil),
        (302, nil), (400, programs),
        (401, "give credentials: --user NAME:PASSWORD, --bearer TOKEN or --netrc FILE"), (403, caller),
        (404, lapse), (407, "give the proxy credentials: --proxy http://NAME:PASSWORD@HOST:PORT"), (408, later),
        (410, lapse), (418, programs), (425, later),
        (429, "retry with a lower --rate-per-host or --max-per-host"), (451, lapse), (500, later), (503, later),
        (599, later),
    ]

    @Test("Each outcome with each of its reasons has its remedy or none, and so has each status")
    func table() {
        for (outcome, reason, expected) in Self.table {
            let text = FailureRemedy.text(outcome, reason, httpStatus: nil)
            #expect(text == expected, "\(outcome) \(reason.map { "\($0)" } ?? "")")
            #expect(text?.contains("\n") != true)
        }
        for (status, expected) in Self.statuses {
            #expect(FailureRemedy.text(.httpError, nil, httpStatus: status) == expected, "\(status)")
        }
        #expect(FailureRemedy.text(.httpError, .browsersOnly, httpStatus: 403) == Self.browsers)
        // The table is whole: each outcome, and each reason once, with the outcome that it belongs to.
        #expect(Set(Self.table.map(\.0)) == Set(PrefetchOutcome.allCases))
        let reasons = Self.table.compactMap(\.1)
        #expect(reasons.count == FailureReason.allCases.count && Set(reasons) == Set(FailureReason.allCases))
        for (outcome, reason, _) in Self.table { #expect(reason.map { $0.outcome == outcome } ?? true) }
    }

    private func denied(
        _ target: String, port: Int = 80, _ configure: (inout ImageDownloader.Configuration) -> Void
    )
        throws -> WebImageError?
    {
        var configuration = ImageDownloader.Configuration()
        configure(&configuration)
        let closed = BlockedEndpoints()
        closed.close("10.0.0.9", port: 6379, reason: "the queue's Redis")
        let gate = AddressGate(configuration, closed: closed)
        return #expect(throws: WebImageError.self) {
            try gate.permitted([try #require(IPAddress(target))], port: port)
        }
    }

    /// By the errors of the rules themselves.
    @Test("What refuses a URL says by which rule, and only what --allow-net opens suggests it")
    func refused() throws {
        func header(_ format: ImageFormat, _ width: Int, _ height: Int) -> ImageHeader {
            ImageHeader(format: format, size: PixelSize(width: width, height: height))
        }
        var rules = ImageRules()
        rules.minSize = PixelSize(width: 200, height: 0)
        #expect(rules.objection(to: header(.png, 10, 10))?.reason == .imageSize)
        #expect(rules.objection(to: header(.svg, 0, 0))?.reason == .unknownSize)
        rules.types = [.png]
        #expect(rules.objection(to: header(.gif, 10, 10))?.reason == .imageType)
        let scheme = #expect(throws: WebImageError.self) { try RequestURL("ftp://h/") }
        let secure = try RequestURL("https://h/")
        let downgrade = #expect(throws: WebImageError.self) { try secure.redirected(to: "http://h/") }
        #expect(scheme?.reason == .scheme && downgrade?.reason == .downgrade)
        #expect(try denied("10.0.0.1") { _ in }?.reason == .closedNetwork)
        #expect(try denied("8.8.8.8", port: 6379) { _ in }?.reason == .closedNetwork)
        let closed = try denied("8.8.8.8") { $0.addressPolicy.deny = [CIDR("8.8.8.0/24")!] }
        #expect(closed?.reason == .deniedNetwork && closed?.refusedAddress == nil)
        let redis = try denied("10.0.0.9", port: 6379) { $0.addressPolicy.allow = [CIDR("10.0.0.0/8")!] }
        #expect(redis?.reason == .queueRedis && redis?.refusedAddress == nil)
        for status in [202, 401, 403] {
            let demand = AccessDemand(status: status) { $0 == "WWW-Authenticate" ? ["Basic"] : [] }
            #expect(demand?.reason == (status == 202 ? .browsersOnly : .credentials))
        }
        #expect(AccessDemand(status: 403) { $0 == "cf-mitigated" ? ["challenge"] : [] }?.reason == .browsersOnly)
        #expect(AccessDemand(status: 403) { _ in [] } == nil)
    }

    /// By the errors of the limits themselves.
    @Test("What is too large says by which limit, and gets no advice to correct the URLs")
    func tooLarge() throws {
        func reason(_ change: (inout ImageCoder.Limits) -> Void) throws -> FailureReason? {
            var limits = ImageCoder.Limits()
            change(&limits)
            let png = GeneratedImage.png(seed: 1, width: 600, height: 600)
            let error = #expect(throws: WebImageError.self) {
                try png.span.withUnsafeBytes { try ImageCoder(limits: limits).verify($0, level: .decode) }
            }
            #expect(error?.outcome == .tooLarge)
            return error?.reason
        }
        #expect(try reason { $0.maxPixels = 9 } == .pixels)
        #expect(try reason { $0.maxMemory = 9 } == .decodeMemory)
        #expect(try reason { ($0.cpuNanoseconds, $0.cpuNanosecondsPerPixel) = (0, 0) } == .decodeTime)
        #expect(try reason { $0.maxDimension = 9 } == .codecLimit)
    }

    @Test("A reason is stored beside the outcome; one that does not belong to it says nothing")
    func stored() {
        for reason in FailureReason.allCases {
            let failure = FailureDetail(
                line: 3, url: "http://h/a", outcome: reason.outcome, reason: reason, httpStatus: 403, tries: 2,
                detail: "no")
            #expect(failure.encoded() == "3\t\(reason.outcome)/\(reason.rawValue)\t403\t2\thttp://h/a\tno")
            #expect(FailureDetail(encoded: failure.encoded()) == failure)
        }
        for text in ["refused", "refused/", "refused/later", "refused/bytes", "refused/robots/robots"] {
            let read = FailureDetail(encoded: "3\t\(text)\t0\t0\thttp://h/a\tno")
            #expect(read?.outcome == .refused && read?.reason == nil, "\(text)")
        }
    }

    private func failure(
        _ host: String, _ outcome: PrefetchOutcome, _ reason: FailureReason? = nil, _ status: Int? = nil
    ) -> FailureDetail {
        FailureDetail(
            line: 1, url: "http://\(host)/a", outcome: outcome, reason: reason, httpStatus: status, tries: 1,
            detail: "whatever it says")
    }

    @Test("Causes are counted with their remedy each, hosts with their most frequent cause and each remedy once")
    func counts() {
        let failures =
            (0..<3).map { _ in failure("a", .httpError, nil, 404) }
            + (0..<2).map { _ in failure("b", .refused, .robots) }
            + [failure("a", .timeout), failure("c", .httpError, nil, 404)]
            + [failure("b", .refused, .closedNetwork), failure("b", .refused, .deniedNetwork)]
        var causes = FailureCounts(by: .cause, of: "x")
        var hosts = FailureCounts(by: .host, of: "x")
        for failure in failures {
            causes.note(failure)
            hosts.note(failure)
        }
        let lines = causes.sheet.lines
        #expect(lines.count == 6 && lines[0] == "URLS  SHARE  CAUSE          WHAT HELPS")
        #expect(lines[1].hasPrefix("   4  44.5%  httpError 404  correct the list"))
        #expect(lines[2].hasPrefix("   2  22.2%  refused        retry without --robots"))
        #expect(lines.contains { $0.hasPrefix("   1  11.1%  refused        open the networks") })
        #expect(lines.contains("   1  11.1%  refused        deniedNetwork"))
        let table = hosts.sheet.lines
        #expect(
            table.prefix(4) == [
                "URLS  SHARE  HOST  CAUSE", "   4  44.5%  a     httpError 404", "   4  44.4%  b     refused",
                "   1  11.1%  c     httpError 404",
            ])
        #expect(table.count == 6 && table[4].hasPrefix("httpError 404: correct the list"))
        #expect(table[5].hasPrefix("refused: retry without --robots"))
        let json = hosts.json.text
        #expect(
            json.contains(
                #"{"host":"a","cause":"httpError","reason":null,"http_status":404,"remedy":"correct the list"#))
        #expect(json.contains(#"{"host":"b","cause":"refused","reason":"robots","http_status":null,"remedy":"retry"#))
    }
}
