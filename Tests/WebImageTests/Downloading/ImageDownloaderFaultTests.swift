import Origin
import Testing

@testable import WebImage

@Suite("ImageDownloader on a misbehaving server", .timeLimit(.minutes(5)))
struct ImageDownloaderFaultTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var name: String
        var response: OriginResponse
        var code: WebImageError.Code
        var requests: Int
        var testDescription: String { name }

        init(_ name: String, _ response: OriginResponse, _ code: WebImageError.Code, _ requests: Int) {
            self.name = name
            self.response = response
            self.code = code
            self.requests = requests
        }
    }

    static let body = pseudoImage(5000)
    static let cases = [
        Case("short body", .init(body: body, fault: .truncated(after: 4999)), .connectionLost, 3),
        Case(
            "announced too long", .init(body: body, framing: .announced("5001"), closesConnection: true),
            .connectionLost, 3),
        Case("no answer", .init(fault: .closeBeforeHeader), .connectionLost, 3),
        Case("reset before the header", .init(fault: .resetBeforeHeader), .connectionLost, 3),
        Case("reset in the body", .init(body: body, fault: .reset(after: 100)), .connectionLost, 3),
        Case(
            "cut in a chunk", .init(body: body, framing: .chunked(size: 1000), fault: .truncated(after: 1500)),
            .connectionLost, 3),
        Case(
            "cut between chunks", .init(body: body, framing: .chunked(size: 1000), fault: .truncated(after: 2000)),
            .connectionLost, 3),
        Case("cut in the header", .init(fault: .raw(Array("HTTP/1.1 200 OK\r\nContent-Le".utf8))), .connectionLost, 3),
        Case(
            "a redirect cut in the header", .init(fault: .raw(Array("HTTP/1.1 302 Found\r\nLocation: /".utf8))),
            .connectionLost, 3),
        Case("ten terabytes announced", .init(body: body, framing: .announced("10000000000000")), .tooLarge, 1),
        Case(
            "a length beyond 64 bits", .init(body: body, framing: .announced("99999999999999999999999")), .tooLarge, 1),
        Case("endless chunks", .init(body: body, framing: .chunked(size: 5000), fault: .endless), .tooLarge, 1),
        Case("20,000 headers", .init(body: body, fault: .headerFlood(20_000)), .connectionLost, 1),
        Case("a header line of 10 MB", .init(body: body, fault: .longHeader(10_000_000)), .connectionLost, 1),
        Case("a header line of 70 KB", .init(body: body, fault: .longHeader(70_000)), .connectionLost, 1),
        Case(
            "a status line of 1 MB",
            .init(fault: .raw(Array("HTTP/1.1 200 \(String(repeating: "a", count: 1_000_000))\r\n\r\n".utf8))),
            .connectionLost, 1),
        Case("1xx flood", .init(body: body, fault: .informationalFlood(1000)), .connectionLost, 1),
        Case("garbage", .init(fault: .raw(pseudoImage(2000))), .connectionLost, 1),
        Case("HTTP/0.9", .http09(Array("<html>".utf8)), .connectionLost, 1),
        Case("SSH", .init(fault: .raw(Array("SSH-2.0-OpenSSH_9.2\r\n".utf8))), .connectionLost, 1),
    ]

    @Test("Each fault has its code and its number of tries", arguments: cases)
    func faults(fault: Case) async throws {
        let server = try OriginServer()
        server.route("/", fault.response)
        let downloader = try makeDownloader { $0.maxBodyBytes = 1 << 20 }
        let error = try #require(await downloader.failure(server.url("/")))
        #expect(error.code == fault.code, "\(error.message)")
        #expect(!error.message.isEmpty)
        #expect(server.requestCount() == fault.requests, "\(error.message) \(error.underlyingCode ?? 0)")
        #expect(error.tries == fault.requests)
        // The downloader is as good as before.
        server.route("/good", OriginResponse(body: Self.body))
        #expect(try await downloader.download(server.url("/good")).body.bytes == Self.body)
    }

    @Test("A body is cut at the limit exactly where it passes it", arguments: [(1000, true), (1001, false)])
    func bodyLimit(count: Int, isTaken: Bool) async throws {
        let server = try OriginServer()
        server.route("/length", OriginResponse(body: pseudoImage(count)))
        server.route("/chunked", OriginResponse(body: pseudoImage(count), framing: .chunked(size: 100)))
        server.route("/close", OriginResponse(body: pseudoImage(count), framing: .untilClose))
        let downloader = try makeDownloader { $0.maxBodyBytes = 1000 }
        for path in ["/length", "/chunked", "/close"] {
            let error = await downloader.failure(server.url(path))
            #expect((error == nil) == isTaken)
            if !isTaken { #expect(error?.code == .tooLarge) }
        }
    }

    @Test("A body whose end nothing announced says so")
    func closeDelimited() async throws {
        let server = try OriginServer()
        server.route("/cut", OriginResponse(body: Self.body, framing: .untilClose, fault: .truncated(after: 2500)))
        server.route("/chunked", OriginResponse(body: Self.body, framing: .chunked(size: 999)))
        server.route("/negative", OriginResponse(body: Self.body, framing: .announced("-5"), closesConnection: true))
        let downloader = try makeDownloader()
        let cut = try await downloader.download(server.url("/cut"))
        #expect(cut.body.count == 2500)
        #expect(!cut.lengthWasAnnounced)
        #expect(cut.httpVersion == "1.0")
        #expect(try await downloader.download(server.url("/chunked")).lengthWasAnnounced)
        #expect(await downloader.failure(server.url("/negative"))?.code == .connectionLost)
    }

    @Test("Two lengths never make a shorter body pass as whole")
    func twoLengths() async throws {
        let server = try OriginServer()
        server.route(
            "/", OriginResponse(body: Self.body, framing: .announcedTwice("10", "6000"), closesConnection: true))
        let downloader = try makeDownloader()
        let error = await downloader.failure(server.url("/"))
        #expect(error?.code == .connectionLost)
    }

    @Test("A gzip bomb ends where it passes 20 times what came")
    func gzipBomb() async throws {
        let server = try OriginServer()
        server.route("/", .gzipBomb(inflatingTo: 40 << 20))
        let downloader = try makeDownloader()
        let error = await downloader.failure(server.url("/"))
        #expect(error?.code == .tooLarge)
        #expect(error?.message.contains("more than 20 times as long unpacked") == true, "\(String(describing: error))")
        #expect(error?.tries == 1)
        #expect(server.requests[0].header("Accept-Encoding") == nil)
    }

    @Test("A header line without an end is called that, not a want of memory")
    func endlessHeaderLine() async throws {
        let server = try OriginServer()
        server.route("/", OriginResponse(body: Self.body, fault: .longHeader(10_000_000)))
        let error = try #require(await makeDownloader { $0.maxHeaderBytes = 1 << 30 }.failure(server.url("/")))
        #expect(
            error.code == .connectionLost && error.message == "a line of the response's header is longer than 100 KB")
    }

    @Test(
        "Silence ends a try, before the header and in the body",
        arguments: [OriginResponse.Fault.stallBeforeHeader, .stall(after: 10)])
    func idle(fault: OriginResponse.Fault) async throws {
        let server = try OriginServer()
        server.route("/", OriginResponse(body: Self.body, fault: fault))
        let downloader = try makeDownloader {
            $0.downloadTimeout = 0.15
            $0.maxTries = 2
        }
        let error = try #require(await downloader.failure(server.url("/")))
        #expect(error.code == .timedOut)
        #expect(error.isTransient)
        var what = "byte"
        if case .stallBeforeHeader = fault { what = "header line" }
        #expect(error.message == "no \(what) for 0.15 s")
        #expect(server.requestCount() == 2)
        #expect(await downloader.activeDownloadCount == 0)
    }

    @Test("A slow drip is not silence, but too slow")
    func lowSpeed() async throws {
        let server = try OriginServer()
        server.route("/", OriginResponse(body: Self.body, fault: .drip(bytes: 1, seconds: 0.02)))
        let downloader = try makeDownloader {
            $0.downloadTimeout = 5
            $0.lowSpeedLimit = 1000
            $0.lowSpeedTime = 0.3
            $0.maxTries = 1
        }
        let error = try #require(await downloader.failure(server.url("/")))
        #expect(error.code == .timedOut)
        #expect(error.message == "less than 1000 bytes/s for 0.3 s")
    }

    @Test("A total limit ends what is neither silent nor slow")
    func maxTime() async throws {
        let server = try OriginServer()
        server.route("/", OriginResponse(body: pseudoImage(1_000_000), fault: .drip(bytes: 1000, seconds: 0.01)))
        let downloader = try makeDownloader {
            $0.maxTime = 0.25
            $0.maxTries = 1
        }
        let error = try #require(await downloader.failure(server.url("/")))
        #expect(error.message == "not done after 0.25 s")
        #expect(error.code == .timedOut)
    }

    @Test("No server, no name")
    func unreachable() async throws {
        let port = try OriginServer().port
        let downloader = try makeDownloader { $0.maxTries = 2 }
        var code: WebImageError.Code?
        // The port's listener ends with its server's thread.
        repeat {
            code = await downloader.failure("http://127.0.0.1:\(port)/")?.code
        } while code == .connectionLost
        #expect(code == .cannotConnectToHost)
        let error = await downloader.failure("http://no.such.host.invalid/")
        #expect(error?.code == .cannotFindHost)
        // Known without a query, and for good.
        #expect(error?.isTransient == false)
        #expect(error?.tries == 0)
    }

    @Test("The environment's proxies are not asked; a proxy that is named is")
    func proxies() async throws {
        let server = try OriginServer()
        server.setFallback { _ in OriginResponse(body: [1]) }
        let downloader = try makeDownloader {
            $0.proxy = server.url("")
            $0.addressPolicy = AddressPolicy()
        }
        _ = try await downloader.download("http://images.example/a.jpg")
        #expect(server.requests.map(\.path) == ["http://images.example/a.jpg"])
        let error = await downloader.failure("http://169.254.169.254/latest")
        #expect(error?.code == .refused)
        #expect(server.requestCount() == 1)
    }

    @Test("What resolve and connectTo name is open, and nothing beside it")
    func named() async throws {
        let server = try OriginServer()
        server.setFallback { _ in OriginResponse(body: [1]) }
        let downloader = try makeDownloader {
            $0.addressPolicy = AddressPolicy()
            $0.resolve = ["images.example:\(server.port):127.0.0.1"]
            $0.connectTo = ["cdn.example:80:127.0.0.1:\(server.port)"]
        }
        _ = try await downloader.download("http://images.example:\(server.port)/a.jpg")
        _ = try await downloader.download("http://cdn.example/b.jpg")
        #expect(server.requests.map { $0.header("Host") } == ["images.example:\(server.port)", "cdn.example"])
        let error = await downloader.failure(server.url("/"))
        #expect(error?.code == .refused)
    }

    @Test("International names are sent as such")
    func internationalNames() async throws {
        let server = try OriginServer()
        server.setFallback { _ in OriginResponse(body: [1]) }
        let downloader = try makeDownloader { $0.resolve = ["xn--bcher-kva.example:\(server.port):127.0.0.1"] }
        _ = try await downloader.download("http://bücher.example:\(server.port)/größe.jpg")
        #expect(server.requests[0].path == "/gr%C3%B6%C3%9Fe.jpg")
        #expect(server.requests[0].header("Host") == "xn--bcher-kva.example:\(server.port)")
    }
}
