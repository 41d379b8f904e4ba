import Origin
import TestSupport
import Testing

@testable import WebImage

@Suite("ImageDownloader and redirects", .timeLimit(.minutes(5)))
struct ImageDownloaderRedirectTests {
    @Test("Redirects are followed, relative and absolute", arguments: [301, 302, 303, 307, 308])
    func follows(status: Int) async throws {
        let server = try OriginServer()
        let other = try OriginServer(address: "127.0.0.2")
        server.route("/a/b", .redirect(to: "c?d", status: status))
        server.route("/a/c?d", .redirect(to: other.url("/e"), status: status))
        other.route("/e", OriginResponse(body: [1]))
        let downloader = try makeDownloader { $0.maxConcurrentDownloads = 1 }
        let image = try await downloader.download(server.url("/a/b"))
        #expect(image.effectiveURL == other.url("/e"))
        #expect(image.redirectCount == 2)
        #expect(image.tries == 1)
        #expect(await downloader.activeDownloadCount == 0)
    }

    @Test("Ten are followed, the eleventh is too many; a loop is too many")
    func limit() async throws {
        let server = try OriginServer()
        for index in 0..<11 { server.route("/\(index)", .redirect(to: "/\(index + 1)")) }
        server.route("/11", OriginResponse(body: [1]))
        server.route("/loop", .redirect(to: "/loop"))
        let downloader = try makeDownloader()
        #expect(try await downloader.download(server.url("/1")).redirectCount == 10)
        let error = await downloader.failure(server.url("/0"))
        #expect(error?.code == .tooManyRedirects)
        #expect(error?.tries == 1)
        let loop = await downloader.failure(server.url("/loop"))
        #expect(loop?.code == .tooManyRedirects)
        #expect(server.requestCount("/loop") == 11)
    }

    @Test(
        "A redirect to what is refused is refused",
        arguments: ["ftp://127.0.0.1/", "file:///etc/passwd", "gopher://127.0.0.1:6379/_X"])
    func schemes(location: String) async throws {
        let server = try OriginServer()
        server.route("/", .redirect(to: location))
        let downloader = try makeDownloader()
        let error = await downloader.failure(server.url("/"))
        #expect(error?.code == .refused)
    }

    @Test("A redirect without a place, and to no place")
    func badLocations() async throws {
        let server = try OriginServer()
        server.route("/none", OriginResponse(status: 302))
        server.route("/bad", .redirect(to: "http://a b/"))
        let downloader = try makeDownloader()
        let none = await downloader.failure(server.url("/none"))
        #expect(none?.code == .invalidDownloadStatusCode)
        let bad = await downloader.failure(server.url("/bad"))
        #expect(bad?.code == .invalidURL)
    }

    @Test("Bytes of a Location are sent on as they are, whatever their encoding")
    func bytes() async throws {
        let server = try OriginServer()
        server.setFallback { _ in OriginResponse(body: [1]) }
        let locations: [([UInt8], String)] = [
            (Array("/caf".utf8) + [0xE9] + Array(".jpg".utf8), "/caf%E9.jpg"),
            (Array("/caf\u{E9}.jpg".utf8), "/caf%C3%A9.jpg"),
            // Both, and the beginnings of characters that do not end.
            (
                [0x2F, 0xC3, 0xA9, 0xE9, 0xE2, 0x82, 0x61, 0xE2, 0x82, 0xAC, 0xF0, 0x9F],
                "/%C3%A9%E9%E2%82a%E2%82%AC%F0%9F"
            ),
            ([0x2F, 0xED, 0xA0, 0x80, 0x3F, 0xFF, 0x80], "/%ED%A0%80?%FF%80"),
            (Array("\(server.url("/a"))".utf8) + [0xFC], "/a%FC"),
        ]
        for (index, (location, expected)) in locations.enumerated() {
            let header = Array("HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: ".utf8) + location
            server.route("/\(index)", OriginResponse(fault: .raw(header + Array("\r\n\r\n".utf8))))
            let image = try await makeDownloader().download(server.url("/\(index)"))
            #expect(image.effectiveURL == server.url(expected))
            #expect(server.requestCount(expected) == 1, "\(expected)")
        }
        let host = Array("HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: http://caf".utf8) + [0xE9, 0x2E]
        server.route("/host", OriginResponse(fault: .raw(host + Array("example/\r\n\r\n".utf8))))
        #expect(try await makeDownloader().failure(server.url("/host"))?.code == .invalidURL)
    }

    @Test("A 404 behind a redirect is a 404")
    func redirectTo404() async throws {
        let server = try OriginServer()
        server.route("/", .redirect(to: "/none", status: 301))
        let downloader = try makeDownloader()
        let error = await downloader.failure(server.url("/"))
        #expect(error?.httpStatus == 404 && server.requests.map(\.path) == ["/", "/none"])
    }

    @Test("A failure behind a redirect is tried again from the start")
    func retriesFromStart() async throws {
        let server = try OriginServer()
        server.route("/", .redirect(to: "/b"))
        server.route("/b", sequence: [.init(status: 503), .init(body: [1])])
        let downloader = try makeDownloader()
        #expect(try await downloader.download(server.url("/")).tries == 2)
        #expect(server.requests.map(\.path) == ["/", "/b", "/", "/b"])
    }

    @Test("Credentials stay with scheme, host and port")
    func credentials() async throws {
        let server = try OriginServer()
        let otherPort = try OriginServer()
        let otherHost = try OriginServer(address: "127.0.0.2")
        server.route("/same", .redirect(to: "/port"))
        server.route("/port", .redirect(to: otherPort.url("/host")))
        otherPort.route("/host", .redirect(to: otherHost.url("/back").replacing("http://", with: "http://evil:evil@")))
        otherHost.route("/back", .redirect(to: server.url("/end")))
        server.route("/end", OriginResponse(body: [1]))
        let downloader = try makeDownloader {
            $0.setValue("a=b", forHTTPHeaderField: "Cookie")
            $0.setValue("key", forHTTPHeaderField: "X-Api-Key")
            $0.setValue("de", forHTTPHeaderField: "accept-language")
        }
        let url = server.url("/same").replacing("http://", with: "http://user:p%40ss@")
        let own = [("Proxy-Authorization", "Basic x"), ("Private-Token", "t"), ("If-Match", "*"), ("X-Of-A-Site", "1")]
        let image = try await downloader.download(url, headers: own.map { HTTPHeader($0, $1) })
        #expect(!image.effectiveURL.contains("ss@"))
        let basic = "Basic dXNlcjpwQHNz"
        #expect(server.requests.map { $0.header("Authorization") } == [basic, basic, basic])
        #expect(server.requests.map { $0.header("Cookie") } == ["a=b", "a=b", "a=b"])
        for (name, value) in own + [("X-Api-Key", "key"), ("Accept-Language", "de")] {
            #expect(server.requests.map { $0.header(name) } == [value, value, value], "\(name)")
        }
        for request in otherPort.requests + otherHost.requests {
            #expect(request.header("Authorization") == nil)
            #expect(request.header("Cookie") == nil)
            #expect(request.header("Proxy-Authorization") == nil)
            // What is not known to be harmless may be a credential.
            for name in ["X-Api-Key", "Private-Token", "X-Of-A-Site"] {
                #expect(request.header(name) == nil, "\(name)")
            }
            #expect(request.header("Accept-Language") == "de" && request.header("If-Match") == "*")
            #expect(request.header("User-Agent") != nil && request.header("Accept") != nil)
        }
        #expect(otherPort.requestCount() == 1 && otherHost.requestCount() == 1)
        // The handle that carried them is used again without.
        _ = try await downloader.download(server.url("/end"))
        #expect(server.requests.last?.header("Authorization") == nil)
    }

    @Test("Cookies are kept only where wanted, and go nowhere else")
    func cookies() async throws {
        let server = try OriginServer()
        let other = try OriginServer(address: "127.0.0.2")
        server.setFallback { _ in OriginResponse(headers: [("Set-Cookie", "id=1; Path=/")], body: [1]) }
        other.setFallback { _ in OriginResponse(body: [1]) }
        let downloader = try makeDownloader()
        for path in ["/1", "/2"] { _ = try await downloader.download(server.url(path), options: .handleCookies) }
        for path in ["/3", "/4"] { _ = try await downloader.download(server.url(path)) }
        _ = try await downloader.download(other.url("/"), options: .handleCookies)
        #expect(server.requests.map { $0.header("Cookie") } == [nil, "id=1", nil, nil])
        #expect(other.requests[0].header("Cookie") == nil)
    }

    @Test("Each jar has its own cookies, over shared connections and redirects, and they go with it")
    func jars() async throws {
        let server = try OriginServer()
        server.setFallback { OriginResponse(headers: [("Set-Cookie", "id=\($0.path.dropFirst()); Path=/")], body: [1]) }
        server.route("/hop", .redirect(to: "/end"))
        let downloader = try makeDownloader { $0.maxConcurrentDownloads = 1 }
        func get(_ path: String, _ jar: CookieJar?) async throws -> String? {
            _ = try await downloader.download(server.url(path), options: .handleCookies, cookies: jar)
            return server.requests.last?.header("Cookie")
        }
        var jar: CookieJar? = CookieJar()
        let other = CookieJar()
        let sent = [
            try await get("/a", jar), try await get("/b", other), try await get("/c", nil), try await get("/hop", jar),
            try await get("/hop", other), try await get("/hop", nil),
        ]
        #expect(sent == [nil, nil, nil, "id=a", "id=b", "id=c"])
        // All of it went over one connection.
        #expect(server.connectionCount == 1)
        #expect(await downloader.jarCount == 3)
        jar = nil
        try await until { await downloader.jarCount == 2 }
        #expect(try await get("/d", CookieJar()) == nil)
        // A session that begins anew forgets all cookies, also those of jars that are still there.
        try await downloader.createNewSession()
        #expect(try await get("/e", other) == nil)
    }

    @Test(
        "A jar that a server fills is emptied at a mebibyte, and one with few cookies that are set again and again is not"
    )
    func fullJar() async throws {
        let server = try OriginServer()
        let value = String(repeating: "v", count: 4_000)
        server.setFallback { request in
            let names = (0..<10).map {
                request.path.hasPrefix("/same") ? "same\($0)" : "\(request.path.dropFirst())-\($0)"
            }
            return OriginResponse(headers: names.map { ("Set-Cookie", "\($0)=\(value); Path=/x") }, body: [1])
        }
        let downloader = try makeDownloader { $0.maxConcurrentDownloads = 1 }
        var largest = 0
        for index in 0..<60 {
            _ = try await downloader.download(server.url("/\(index)"), options: .handleCookies)
            largest = max(largest, await downloader.cookieBytes)
        }
        #expect(largest > 500_000 && largest <= CurlSession.mostCookieBytes, "\(largest)")
        try await downloader.createNewSession()
        var smallest = Int.max
        for index in 0..<60 {
            _ = try await downloader.download(server.url("/same/\(index)"), options: .handleCookies)
            smallest = min(smallest, await downloader.cookieBytes)
        }
        #expect(smallest > 40_000)
    }

    @Test("Two downloads of one URL with different jars are two transfers")
    func jarsDoNotShareATransfer() async throws {
        let server = try OriginServer()
        server.route("/", OriginResponse(body: [1], fault: .stallBeforeHeader))
        let downloader = try makeDownloader()
        async let first = downloader.download(server.url("/"), options: .handleCookies, cookies: CookieJar())
        async let second = downloader.download(server.url("/"), options: .handleCookies, cookies: CookieJar())
        try await until { server.requestCount("/") == 2 }
        server.release("/")
        _ = try await (first, second)
    }
}
