import Origin
import TestSupport
import Testing

@testable import WebImage

/// Batches of one worker, each with request settings of its own, over one downloader.
@Suite("Request profiles", .timeLimit(.minutes(5)))
struct RequestProfileTests {
    private let server: OriginServer

    init() throws { server = try OriginServer() }

    private func download(
        _ downloader: ImageDownloader, _ path: String, _ profile: RequestProfile?
    ) async -> Result<DownloadedImage, WebImageError> {
        do throws(WebImageError) {
            return .success(try await downloader.download(server.url(path), profile: profile, permit: nil))
        } catch {
            return .failure(error)
        }
    }

    private func code(_ result: Result<DownloadedImage, WebImageError>) -> WebImageError.Code? {
        if case .failure(let error) = result { error.code } else { nil }
    }

    @Test(
        "Downloads of one URL under two profiles are two transfers, each with its headers, its size limit and its tries"
    )
    func apart() async throws {
        server.route("/held", OriginResponse(body: pseudoImage(5000), fault: .stallBeforeHeader))
        server.route("/busy", OriginResponse(status: 503))
        let downloader = try makeDownloader { $0.maxConcurrentDownloads = 1 }
        let small = try await downloader.profile {
            $0.maxBodyBytes = 1000
            $0.maxTries = 1
            $0.setValue("small", forHTTPHeaderField: "User-Agent")
            $0.setValue("1", forHTTPHeaderField: "X-Own")
        }
        async let first = download(downloader, "/held", small)
        async let second = download(downloader, "/held", nil)
        async let third = download(downloader, "/held", small)
        try await until { await downloader.currentDownloadCount == 2 }
        await server.waitForRequests(1, to: "/held")
        server.release("/held")
        #expect(await code(first) == .tooLarge)
        #expect(await code(third) == .tooLarge)
        #expect(try await second.get().body.count == 5000)
        let own = server.requests.filter { $0.header("X-Own") == "1" && $0.header("User-Agent") == "small" }
        #expect(server.requestCount("/held") == 2 && own.count == 1)
        // On handles that the other profile had before.
        for _ in 0..<2 {
            #expect(await code(download(downloader, "/busy", small)) == .invalidDownloadStatusCode)
            #expect(await code(download(downloader, "/busy", nil)) == .invalidDownloadStatusCode)
        }
        #expect(server.requestCount("/busy") == 2 * (1 + 3))
    }

    @Test("A profile's timeouts end its own transfers")
    func timeouts() async throws {
        server.setFallback { _ in OriginResponse(body: [1], fault: .stallBeforeHeader) }
        let downloader = try makeDownloader { $0.downloadTimeout = 60 }
        let hasty = try await downloader.profile {
            $0.downloadTimeout = 0.1
            $0.maxTries = 1
        }
        let patient = Task { await download(downloader, "/patient", nil) }
        await server.waitForRequests(1, to: "/patient")
        // Its transfers are looked at as often as it needs, beside one that is in no hurry.
        #expect(await code(download(downloader, "/hasty", hasty)) == .timedOut)
        #expect(await downloader.currentDownloadCount == 1)
        server.release("/patient")
        #expect(try await patient.value.get().body.count == 1)
    }

    @Test("Sites are asked by the profiles that ask them, each under its own name")
    func robots() async throws {
        server.setFallback { _ in OriginResponse(body: [1]) }
        server.route("/robots.txt", OriginResponse(body: Array("User-agent: one\nDisallow: /private/\n".utf8)))
        let downloader = try makeDownloader()
        func profile(_ agent: String) async throws -> RequestProfile {
            try await downloader.profile {
                $0.asksRobots = true
                $0.setValue("\(agent)/1.0", forHTTPHeaderField: "User-Agent")
            }
        }
        let (one, other) = (try await profile("one"), try await profile("other"))
        #expect(await code(download(downloader, "/private/a", one)) == .refused)
        #expect(await code(download(downloader, "/private/a", other)) == nil)
        #expect(await code(download(downloader, "/private/a", nil)) == nil)
        let asked = server.requests.filter { $0.path == "/robots.txt" }.map { $0.header("User-Agent") }
        #expect(asked == ["one/1.0", "other/1.0"])
    }

    @Test("The rate of a profile holds for its downloads, though the downloader itself has none")
    func hostLimits() async throws {
        server.setFallback { _ in OriginResponse(body: [1]) }
        let downloader = try makeDownloader { $0.hosts = HostPolicy() }
        let slow = try await downloader.profile { $0.hosts.requestsPerSecond = 20 }
        let began = ContinuousClock.now
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<11 {
                group.addTask { #expect(await code(download(downloader, "/\(number)", slow)) == nil) }
            }
        }
        #expect(ContinuousClock.now - began >= .milliseconds(500))
    }

    @Test("A variation out of range is refused, and one cannot change what is the downloader's")
    func refused() async throws {
        let downloader = try makeDownloader()
        await #expect(throws: WebImageError.self) { try await downloader.profile { $0.maxTries = 0 } }
        server.setFallback { _ in OriginResponse(body: [1]) }
        let profile = try await downloader.profile { $0.addressPolicy = AddressPolicy() }
        // The address policy of the downloader opens this machine.
        #expect(await code(download(downloader, "/a", profile)) == nil)
    }
}
