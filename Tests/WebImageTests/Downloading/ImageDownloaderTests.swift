import CLinux
import Origin
import TestSupport
import Testing

@testable import WebImage

@Suite("ImageDownloader", .timeLimit(.minutes(5)))
struct ImageDownloaderTests {
    @Test("A body comes as it was sent, with what the server said about it")
    func downloads() async throws {
        let server = try OriginServer()
        let body = pseudoImage(50_000)
        server.route(
            "/a.jpg?x=1",
            OriginResponse(
                headers: [
                    ("ETag", "\"7\""), ("Last-Modified", "Fri, 20 Nov 2026 00:00:00 GMT"),
                    ("Content-Type", "image/jpeg"),
                    ("X-Robots-Tag", "noindex"),
                ], body: body))
        let downloader = try makeDownloader()
        let image = try await downloader.download(server.url("/a.jpg?x=1#part"))
        #expect(try image.body.bytes == body)
        #expect(image.statusCode == 200)
        #expect(image.eTag == "\"7\"")
        #expect(image.lastModified == "Fri, 20 Nov 2026 00:00:00 GMT")
        #expect(image.contentType == "image/jpeg")
        #expect(image.effectiveURL == server.url("/a.jpg?x=1"))
        #expect(image.tries == 1)
        #expect(image.remoteAddress == "127.0.0.1")
        #expect(image.httpVersion == "1.1")
        #expect(image.lengthWasAnnounced)
        #expect(image.timing.total > 0 && image.timing.total >= image.timing.firstByte)
        #expect(await downloader.currentDownloadCount == 0)
        let request = try #require(server.requests.first)
        #expect(request.headers.map(\.name).sorted() == ["Accept", "Host", "User-Agent"])
        #expect(request.header("User-Agent") == "prefetch/0.1.0")
        #expect(request.header("Accept") == "image/*;q=0.8")
    }

    @Test("One connection serves one download after the other")
    func keepsAlive() async throws {
        let server = try OriginServer()
        server.setFallback { _ in OriginResponse(body: [1, 2, 3]) }
        server.route("/404", OriginResponse(status: 404, body: pseudoImage(10_000)))
        let downloader = try makeDownloader()
        var reused: [Bool] = []
        for index in 0..<5 {
            reused.append(try await downloader.download(server.url("/\(index)")).timing.reusedConnection)
            // The body of an error is read, so that the connection stays.
            #expect(await downloader.failure(server.url("/404")) != nil)
        }
        #expect(reused == [false, true, true, true, true])
        #expect(server.connectionCount == 1)
    }

    @Test("The large body of an error is not read")
    func unwantedBodies() async throws {
        let server = try OriginServer()
        server.route(
            "/endless",
            OriginResponse(status: 404, body: pseudoImage(60_000), framing: .chunked(size: 9000), fault: .endless))
        server.route("/long", OriginResponse(status: 410, framing: .announced("90000000"), fault: .stall(after: 0)))
        server.route("/late", OriginResponse(status: 404, framing: .announced("9000"), fault: .stall(after: 0)))
        let downloader = try makeDownloader { $0.downloadTimeout = 0.3 }
        let error = await downloader.failure(server.url("/endless"))
        #expect(error?.httpStatus == 404)
        let long = await downloader.failure(server.url("/long"))
        #expect(long?.httpStatus == 410)
        #expect(await downloader.failure(server.url("/late"))?.httpStatus == 404)
        #expect(server.requestCount() == 3)
        // 16 KiB, and the piece with which it was too much.
        let bytes = await downloader.activity.work.bytes
        #expect(bytes <= 16 << 10 + 128 << 10, "\(bytes) bytes")
    }

    @Test(
        "A status that is no success is told by its number, and tried again only where that can help",
        arguments: [
            (404, 1), (410, 1), (451, 1), (403, 1), (300, 1), (305, 1), (408, 3), (425, 3), (429, 3), (500, 3),
            (503, 3), (599, 3),
        ])
    func statuses(status: Int, requests: Int) async throws {
        let server = try OriginServer()
        server.route("/", OriginResponse(status: status, body: [1]))
        let downloader = try makeDownloader()
        let error = try #require(await downloader.failure(server.url("/")))
        #expect(error.code == .invalidDownloadStatusCode)
        #expect(error.httpStatus == status)
        #expect(error.message == "HTTP \(status)")
        #expect(error.tries == requests)
        #expect(error.isTransient == (requests > 1))
        #expect(server.requestCount() == requests)
    }

    @Test("304 to a validator is told as such")
    func notModified() async throws {
        let server = try OriginServer()
        server.route("/", OriginResponse(headers: [("ETag", "\"a\"")], body: [1]))
        let downloader = try makeDownloader()
        let error = await downloader.failure(server.url("/"), headers: [HTTPHeader("If-None-Match", "\"a\"")])
        #expect(error?.code == .cacheNotModified)
        #expect(error?.httpStatus == 304)
        #expect(
            try await downloader.download(server.url("/"), headers: [HTTPHeader("If-None-Match", "\"b\"")]).statusCode
                == 200)
    }

    @Test("What heals within the tries is an image")
    func heals() async throws {
        let server = try OriginServer()
        server.route(
            "/",
            sequence: [
                .init(status: 503), .init(body: [1, 2, 3], fault: .truncated(after: 1)), .init(body: [1, 2, 3]),
            ])
        let downloader = try makeDownloader()
        let image = try await downloader.download(server.url("/"))
        #expect(image.tries == 3)
        #expect(try image.body.bytes == [1, 2, 3])
    }

    @Test("Tries of the caller count")
    func triesUsed() async throws {
        let server = try OriginServer()
        server.route("/", OriginResponse(status: 500))
        let downloader = try makeDownloader()
        let error = await downloader.failure(server.url("/"), triesUsed: 2)
        #expect(error?.tries == 3)
        #expect(server.requestCount() == 1)
    }

    @Test("Retry-After is waited for, up to its limit")
    func retryAfter() async throws {
        let server = try OriginServer()
        server.route("/busy", sequence: [.busy(status: 429, retryAfter: 3600), .init(body: [1])])
        let downloader = try makeDownloader { $0.maxRetryAfter = 0.3 }
        #expect(try await downloader.download(server.url("/busy")).tries == 2)
        let times = server.requests.map(\.time)
        #expect(times[1] - times[0] >= 0.29)
    }

    @Test("A download that waits for its next try holds no slot")
    func retryHoldsNoSlot() async throws {
        let server = try OriginServer()
        server.route("/busy", .busy(retryAfter: 60))
        server.route("/b", OriginResponse(body: [2]))
        let downloader = try makeDownloader { $0.maxConcurrentDownloads = 1 }
        let busy = Task { try await downloader.download(server.url("/busy")) }
        await server.waitForRequests(1, to: "/busy")
        #expect(try await downloader.download(server.url("/b")).body.bytes == [2])
        #expect(await downloader.currentDownloadCount == 1)
        busy.cancel()
        _ = await busy.result
        #expect(server.requestCount("/busy") == 1)
    }

    @Test("Headers are set, replaced and removed")
    func headers() async throws {
        let server = try OriginServer()
        server.route("/", OriginResponse(body: [1]))
        let downloader = try makeDownloader {
            $0.setValue(nil, forHTTPHeaderField: "accept")
            $0.setValue("me", forHTTPHeaderField: "User-Agent")
            $0.setValue("1", forHTTPHeaderField: "X-One")
        }
        _ = try await downloader.download(
            server.url("/"), headers: [HTTPHeader("x-one", "2"), HTTPHeader("X-Empty", "")])
        let request = try #require(server.requests.first)
        #expect(request.header("Accept") == nil)
        #expect(request.header("User-Agent") == "me")
        #expect(request.headers.filter { $0.name.lowercased() == "x-one" }.map(\.value) == ["2"])
        #expect(request.header("X-Empty") == "")
        let bad = await downloader.failure(server.url("/"), headers: [HTTPHeader("A", "b\r\nC: d")])
        #expect(bad?.code == .invalidConfiguration)
        #expect(server.requestCount() == 1)
    }

    @Test("A large body moves to the file, a small one does not")
    func spools() async throws {
        let server = try OriginServer()
        let body = pseudoImage(3_000_000)
        server.route("/large", OriginResponse(body: body))
        server.route("/small", OriginResponse(body: [1]))
        let downloader = try makeDownloader {
            $0.openTemporaryFile = { () throws(WebImageError) in clinux_open("/tmp", clinux_tmpfile_flags(), 0o600) }
        }
        let large = try await downloader.download(server.url("/large"))
        #expect(large.body.fileDescriptor != nil)
        #expect(try large.body.bytes == body)
        #expect(try await downloader.download(server.url("/small")).body.fileDescriptor == nil)
    }

    @Test("A temporary file that cannot be written is our fault, at once")
    func spoolFails() async throws {
        let server = try OriginServer()
        server.route("/large", OriginResponse(body: pseudoImage(3_000_000)))
        let full = try makeDownloader {
            $0.openTemporaryFile = { () throws(WebImageError) in clinux_open("/dev/full", 1, 0) }
        }
        let error = await full.failure(server.url("/large"))
        #expect(error?.code == .localFault)
        #expect(error?.underlyingCode == 28)
        #expect(server.requestCount() == 1)
    }

    @Test("The header is looked at until it is known, and a bad one ends the transfer")
    func inspects() async throws {
        let server = try OriginServer()
        server.route(
            "/endless", OriginResponse(body: pseudoImage(9000), framing: .chunked(size: 9000), fault: .endless))
        server.route("/good", OriginResponse(body: Array(repeating: 7, count: 100_000), framing: .chunked(size: 500)))
        let downloader = try makeDownloader {
            $0.inspectHeader = { bytes throws(WebImageError) in
                guard bytes[0] == 7 else { throw WebImageError(.badImageData, "no image") }
                return bytes.count < 2000 ? nil : ImageHeader(format: .unknown, size: PixelSize(width: 0, height: 0))
            }
        }
        let error = await downloader.failure(server.url("/endless"))
        #expect(error?.code == .badImageData)
        #expect(error?.tries == 1)
        #expect(try await downloader.download(server.url("/good")).body.count == 100_000)
    }

    @Test(
        "A header that frames the connection is refused, wherever it is given",
        arguments: [
            "Content-Length", "transfer-encoding", "Host", "CONNECTION", "TE", "Upgrade", "Expect", "Keep-Alive",
            "Proxy-Connection", "Trailer",
        ])
    func framing(name: String) async throws {
        let header = HTTPHeader(name, "1")
        #expect(!header.isValid && header.isOfConnection)
        let downloader = try makeDownloader()
        let error = await downloader.failure("http://127.0.0.1:1/", headers: [header])
        #expect(error?.code == .invalidConfiguration && error?.message.contains(name) == true)
        await #expect(throws: WebImageError.self) { try await downloader.setValue("1", forHTTPHeaderField: name) }
    }

    @Test("Names that only look like them are sent", arguments: ["Content-Lengths", "X-Host", "\u{212A}eep-Alive"])
    func likeFraming(name: String) { #expect(!HTTPHeader(name, "1").isOfConnection) }

    @Test("A setting out of range is refused by name")
    func validates() {
        let changes: [(String, (inout ImageDownloader.Configuration) -> Void)] = [
            ("maxConcurrentDownloads", { $0.maxConcurrentDownloads = 0 }),
            ("downloadTimeout", { $0.downloadTimeout = -1 }),
            ("maxTime", { $0.maxTime = .nan }), ("maxTries", { $0.maxTries = 0 }),
            ("maxRedirects", { $0.maxRedirects = -1 }), ("maxBodyBytes", { $0.maxBodyBytes = 0 }),
            ("retryBaseDelay", { $0.retryBaseDelay = -1 }), ("maxConnectionsPerHost", { $0.maxConnectionsPerHost = 0 }),
            ("X Y", { $0.headers = [HTTPHeader("X Y", "1")] }), ("hOST", { $0.headers = [HTTPHeader("hOST", "h")] }),
            ("memoryLimit", { $0.memoryLimit = -1 }),
        ]
        for (name, change) in changes {
            let error = #expect(throws: WebImageError.self) { _ = try makeDownloader(change) }
            #expect(error?.code == .invalidConfiguration)
            #expect(error?.message.contains(name) == true)
        }
    }

    @Test("A downloader ends with its last owner, and its connections with it")
    func ends() async throws {
        let server = try OriginServer()
        server.route("/", OriginResponse(body: [1]))
        var downloader: ImageDownloader? = try makeDownloader()
        _ = try await downloader?.download(server.url("/"))
        weak let gone = downloader
        #expect(server.openConnectionCount == 1)
        downloader = nil
        try await until { server.openConnectionCount <= 0 }
        #expect(gone == nil)
    }
}
