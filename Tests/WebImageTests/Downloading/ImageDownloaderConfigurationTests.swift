import Origin
import TestSupport
import Testing
import Threading

@testable import WebImage

/// What a downloader's configuration changes of its requests, connections and responses.
@Suite("What a downloader is told", .timeLimit(.minutes(5)))
struct ImageDownloaderConfigurationTests {
    private let origin: OriginServer

    init() throws {
        origin = try OriginServer()
    }

    @Test("Headers are set, read and removed while it runs")
    func headers() async throws {
        origin.setFallback { _ in OriginResponse(body: [1]) }
        let downloader = try makeDownloader()
        #expect(await downloader.value(forHTTPHeaderField: "accept") == "image/*;q=0.8")
        try await downloader.setValue("1", forHTTPHeaderField: "X-Test")
        #expect(await downloader.value(forHTTPHeaderField: "x-test") == "1")
        _ = try await downloader.download(origin.url("/1"))
        try await downloader.setValue(nil, forHTTPHeaderField: "X-TEST")
        _ = try await downloader.download(origin.url("/2"))
        #expect(origin.requests.map { $0.header("X-Test") } == ["1", nil])
        await #expect(throws: WebImageError.self) {
            try await downloader.setValue("a\r\nb: c", forHTTPHeaderField: "X-Test")
        }
    }

    @Test("A filter makes the headers of each URL, for every hop of it; only harmless ones go to another site")
    func filter() async throws {
        let other = try OriginServer()
        origin.route("/a", OriginResponse.redirect(to: other.url("/b")))
        other.route("/b", OriginResponse(body: [1]))
        let downloader = try makeDownloader {
            $0.headersFilter = { url, headers in
                let own = String(url.suffix(2))
                return headers + [
                    HTTPHeader("X-Host", own), HTTPHeader("Referer", own), HTTPHeader("Authorization", "secret"),
                ]
            }
        }
        _ = try await downloader.download(origin.url("/a"), headers: [HTTPHeader("X-Own", "2")])
        let (first, second) = (try #require(origin.requests.first), try #require(other.requests.first))
        #expect(
            first.header("X-Host") == "/a" && first.header("X-Own") == "2" && first.header("Authorization") == "secret")
        #expect(second.header("X-Own") == nil && second.header("Authorization") == nil)
        #expect(second.header("Referer") == "/a" && second.header("X-Host") == nil)
    }

    @Test("A timeout of 0 is the default of 15 seconds, and a version of SDWebImage sets tries and Accept")
    func defaults() {
        var configuration = ImageDownloader.Configuration()
        configuration.downloadTimeout = 0
        #expect(configuration.downloadTimeout == 15)
        configuration.setValue("image/png", forHTTPHeaderField: "Accept")
        configuration.follow(.sd3)
        #expect(configuration.maxTries == 1)
        #expect(configuration.value(forHTTPHeaderField: "accept") == "image/*;q=0.8")
    }

    @Test("Only accepted types are taken, and the connection is used again", arguments: ["image/jpeg", "image/*"])
    func contentTypes(accepted: String) async throws {
        origin.route("/yes", OriginResponse(headers: [("Content-Type", "image/jpeg; q=1")], body: [1]))
        origin.route("/no", OriginResponse(headers: [("Content-Type", "text/html")], body: [2]))
        origin.route("/none", OriginResponse(body: [3]))
        let downloader = try makeDownloader { $0.acceptableContentTypes = [accepted] }
        #expect(try await downloader.download(origin.url("/yes")).body.bytes == [1])
        for path in ["/no", "/none"] {
            let error = try #require(await downloader.failure(origin.url(path)))
            #expect(error.code.rawValue == 2004 && error.outcome == .refused && error.httpStatus == 200)
            #expect(error.tries == 1)
        }
        #expect(origin.connectionCount == 1)
    }

    @Test("A status that is accepted is an answer, and one that is not is none, whatever it is")
    func statusCodes() async throws {
        origin.route("/404", OriginResponse(status: 404, body: [4]))
        origin.route("/200", OriginResponse(body: [2]))
        origin.route("/302", OriginResponse.redirect(to: "/404"))
        origin.route("/big", OriginResponse(body: pseudoImage(1 << 20)))
        let downloader = try makeDownloader { $0.acceptableStatusCodes = [404...404, 410...410] }
        for path in ["/404", "/302"] {
            let image = try await downloader.download(origin.url(path))
            #expect(try image.body.bytes == [4] && image.statusCode == 404)
        }
        for path in ["/200", "/big"] {
            let error = await downloader.failure(origin.url(path))
            #expect(error?.code.rawValue == 2001 && error?.httpStatus == 200 && error?.isTransient == false)
        }
    }

    @Test("One address family alone is used where that is asked")
    func families() async throws {
        guard let six = try? OriginServer(address: "::1", port: origin.port) else { return }
        for server in [origin, six] { server.setFallback { _ in OriginResponse(body: [1]) } }
        let port = origin.port
        for version in [ImageDownloader.Configuration.IPVersion.v4, .v6] {
            let downloader = try makeDownloader {
                $0.ipVersion = version
                $0.resolve = ["both.test:\(port):127.0.0.1,[::1]"]
            }
            _ = try await downloader.download("http://both.test:\(port)/")
        }
        #expect(origin.requestCount() == 1 && six.requestCount() == 1)
    }

    @Test("Everything goes through a SOCKS proxy, which resolves the names itself with socks5h")
    func socks() async throws {
        origin.setFallback { _ in OriginResponse(body: [7]) }
        let proxy = SOCKSServer(target: origin.port)
        let downloader = try makeDownloader { $0.proxy = "socks5h://127.0.0.1:\(proxy.port)" }
        #expect(try await downloader.download("http://only-there.test/a").body.bytes == [7])
        #expect(proxy.asked == ["only-there.test:80"])
        #expect(origin.requests.first?.header("Host") == "only-there.test")
        // An address that must not be reached is not asked for behind a proxy either.
        let error = await downloader.failure("http://10.0.0.1/")
        #expect(error?.code == .refused && proxy.asked.count == 1)
    }

    @Test("A session that is renewed ends what runs, and goes on with new connections and settings")
    func newSession() async throws {
        origin.setFallback { _ in OriginResponse(body: [1]) }
        origin.route("/stalls", OriginResponse(body: [1], fault: .stallBeforeHeader))
        let downloader = try makeDownloader { $0.maxConcurrentDownloads = 1 }
        _ = try await downloader.download(origin.url("/a"))
        let (stalling, waiting) = (origin.url("/stalls"), origin.url("/b"))
        var loads = [Task { await downloader.failure(stalling) }]
        await origin.waitForRequests(2)
        loads.append(Task { await downloader.failure(waiting) })
        try await until { await downloader.currentDownloadCount == 2 }
        var configuration = await downloader.configuration
        configuration.setValue("new", forHTTPHeaderField: "X-Session")
        configuration.maxConcurrentDownloads = 4
        configuration.executionOrder = .lifo
        try await downloader.createNewSession(configuration: configuration)
        for load in loads { #expect(await load.value?.code == .cancelled) }
        #expect(await downloader.maxConcurrentDownloads == 4)
        _ = try await downloader.download(origin.url("/c"))
        #expect(origin.requests.last?.header("X-Session") == "new" && origin.connectionCount >= 2)
        configuration.maxTries = 0
        await #expect(throws: WebImageError.self) {
            try await downloader.createNewSession(configuration: configuration)
        }
        _ = try await downloader.download(origin.url("/d"))
    }

    @Test(
        "A renewed session keeps to its new policy of hosts, to robots.txt and to its bytes a second, and to the old ones no more"
    )
    func newPolicy() async throws {
        origin.setFallback { _ in OriginResponse(body: pseudoImage(20_000)) }
        origin.route("/robots.txt", OriginResponse(body: Array("User-agent: *\nDisallow: /private/".utf8)))
        let downloader = try makeDownloader()
        #expect(await downloader.failure(origin.url("/private/a")) == nil)
        var configuration = await downloader.configuration
        configuration.hosts.requestsPerSecond = 5
        configuration.asksRobots = true
        try await downloader.createNewSession(configuration: configuration)
        #expect(await downloader.failure(origin.url("/private/b"))?.outcome == .refused)
        for index in 0..<3 { _ = try await downloader.download(origin.url("/\(index)"), options: .uninspected) }
        let times = origin.requests.dropFirst().map(\.time)
        #expect(times.count == 4 && times[3] - times[0] >= 3 / 5.0 - 0.05, "\(times)")
        configuration.hosts = HostPolicy()
        configuration.asksRobots = false
        configuration.limitRate = 100_000
        try await downloader.createNewSession(configuration: configuration)
        let (url, began) = (origin, MonotonicClock.now)
        await withTaskGroup(of: Void.self) { group in
            for index in 0..<10 {
                group.addTask { #expect(await downloader.failure(url.url("/private/\(index)")) == nil) }
            }
        }
        // What was saved up, and one buffer that came too early.
        #expect(MonotonicClock.now - began >= (200_000 - 5_000 - 65_536) / 100_000.0)
        #expect(origin.requestCount("/robots.txt") == 1)
        configuration.limitRate = nil
        try await downloader.createNewSession(configuration: configuration)
        #expect(await !downloader.governsHosts)
    }

    @Test("A session can be ended once what is in flight has finished")
    func finishing() async throws {
        origin.route("/a", OriginResponse(body: [1], fault: .stallBeforeHeader))
        let downloader = try makeDownloader()
        let url = origin.url("/a")
        let load = Task { try await downloader.download(url).body.bytes }
        await origin.waitForRequests(1)
        let end = Task { await downloader.finishDownloadsAndInvalidateSession() }
        try await until { await downloader.isInvalidated }
        #expect(await downloader.failure(origin.url("/b"))?.code == .cancelled)
        origin.release("/a")
        #expect(try await load.value == [1])
        await end.value
        try await until { origin.openConnectionCount == 0 }
    }

    @Test("The order of what waits can be changed while it waits")
    func executionOrder() async throws {
        origin.setFallback { _ in OriginResponse(body: [1]) }
        let downloader = try makeDownloader { $0.maxConcurrentDownloads = 1 }
        await downloader.setSuspended(true)
        let urls = (1...4).map { origin.url("/\($0)") }
        var loads: [Task<WebImageError?, Never>] = []
        for (index, url) in urls.enumerated() {
            loads.append(Task { await downloader.failure(url) })
            try await until { await downloader.currentDownloadCount == index + 1 }
        }
        await downloader.setExecutionOrder(.lifo)
        await downloader.setSuspended(false)
        for load in loads { #expect(await load.value == nil) }
        #expect(origin.requests.map(\.path) == ["/4", "/3", "/2", "/1"])
    }
}

/// What needs a server that speaks TLS.
@Suite(
    "What a downloader is told, over TLS", .timeLimit(.minutes(5)),
    .enabled(if: NginxServer.isInstalled, "nginx and openssl are not installed"))
struct ImageDownloaderTLSConfigurationTests {
    @Test("HTTP/2 is used if it is asked for")
    func http2() async throws {
        let nginx = try NginxServer()
        for usesHTTP2 in [nil, true, false] {
            let downloader = try makeDownloader {
                $0.caFile = nginx.certificate
                if let usesHTTP2 { $0.usesHTTP2 = usesHTTP2 }
            }
            #expect(try await downloader.download(nginx.url("/")).httpVersion == (usesHTTP2 == true ? "2" : "1.1"))
        }
    }

    @Test("A server that asks for a certificate gets this client's")
    func clientCertificate() async throws {
        let nginx = try NginxServer(asksForCertificate: true)
        let without = try makeDownloader { $0.caFile = nginx.certificate }
        #expect(await without.failure(nginx.url("/"))?.httpStatus == 400)
        let downloader = try makeDownloader {
            $0.caFile = nginx.certificate
            $0.clientCertificateFile = nginx.certificate
            $0.clientKeyFile = nginx.key
        }
        #expect(try await downloader.download(nginx.url("/")).statusCode == 200)
        let missing = try makeDownloader {
            $0.caFile = nginx.certificate
            $0.clientCertificateFile = "/no/such/file"
        }
        #expect(await missing.failure(nginx.url("/"))?.code == .secureConnectionFailed)
    }
}
