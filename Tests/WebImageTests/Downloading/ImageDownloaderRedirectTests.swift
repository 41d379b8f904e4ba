import Origin
import Testing

@testable import WebImage

@Suite("ImageDownloader and redirects", .timeLimit(.minutes(1)))
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
        #expect(image.attempts == 1)
        #expect(await downloader.activeDownloadCount == 0)
    }

    @Test("Five are followed, the sixth is too many; a loop is too many")
    func limit() async throws {
        let server = try OriginServer()
        for index in 0..<6 { server.route("/\(index)", .redirect(to: "/\(index + 1)")) }
        server.route("/6", OriginResponse(body: [1]))
        server.route("/loop", .redirect(to: "/loop"))
        let downloader = try makeDownloader()
        #expect(try await downloader.download(server.url("/1")).redirectCount == 5)
        let error = await downloader.failure(server.url("/0"))
        #expect(error?.code == .tooManyRedirects)
        #expect(error?.attempts == 1)
        let loop = await downloader.failure(server.url("/loop"))
        #expect(loop?.code == .tooManyRedirects)
        #expect(server.requestCount("/loop") == 6)
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

    @Test("A 404 behind a redirect is a 404")
    func redirectTo404() async throws {
        let server = try OriginServer()
        server.route("/", .redirect(to: "/none", status: 301))
        let downloader = try makeDownloader()
        let error = await downloader.failure(server.url("/"))
        #expect(error?.httpStatus == 404)
    }

    @Test("A failure behind a redirect is tried again from the start")
    func retriesFromStart() async throws {
        let server = try OriginServer()
        server.route("/", .redirect(to: "/b"))
        server.route("/b", sequence: [.init(status: 503), .init(body: [1])])
        let downloader = try makeDownloader()
        #expect(try await downloader.download(server.url("/")).attempts == 2)
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
            $0.setValue("1", forHTTPHeaderField: "X-Kept")
        }
        let url = server.url("/same").replacing("http://", with: "http://user:p%40ss@")
        let image = try await downloader.download(url, headers: [HTTPHeader("Proxy-Authorization", "Basic x")])
        #expect(!image.effectiveURL.contains("ss@"))
        let basic = "Basic dXNlcjpwQHNz"
        #expect(server.requests.map { $0.header("Authorization") } == [basic, basic, basic])
        #expect(server.requests.map { $0.header("Cookie") } == ["a=b", "a=b", "a=b"])
        for request in otherPort.requests + otherHost.requests {
            #expect(request.header("Authorization") == nil)
            #expect(request.header("Cookie") == nil)
            #expect(request.header("Proxy-Authorization") == nil)
            #expect(request.header("X-Kept") == "1")
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
}
