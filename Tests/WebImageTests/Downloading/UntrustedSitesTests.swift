import Testing

@testable import WebImage

@Suite("Sites whose certificate is refused")
struct UntrustedSitesTests {
    private static let error = WebImageError(.secureConnectionFailed, "self-signed certificate", underlyingCode: 60)

    @Test("One refusal speaks for a site that has brought nothing, three in a row for one that has, for 30 seconds")
    func refusals() {
        var sites = UntrustedSites()
        let isRefused = sites.didRefuse("https://new", Self.error, isProven: false, now: 10)
        #expect(isRefused)
        #expect(sites.refusal(of: "https://new", now: 39.9)?.code == .secureConnectionFailed)
        #expect(sites.refusal(of: "https://other", now: 10) == nil)
        #expect(sites.refusal(of: "https://new", now: 40) == nil)
        for time in [1.0, 2, 3] {
            let isRefused = sites.didRefuse("https://good", Self.error, isProven: true, now: time)
            #expect(isRefused == (time == 3))
        }
        sites.didTrust("https://good")
        #expect(sites.refusal(of: "https://good", now: 3) == nil)
        let isRefusedAgain = sites.didRefuse("https://good", Self.error, isProven: true, now: 4)
        #expect(!isRefusedAgain)
    }

    @Test(
        "All URLs of a site end at once with what its certificate is, and one request tells it",
        .enabled(if: NginxServer.isInstalled, "nginx and openssl are not installed"), .timeLimit(.minutes(5)))
    func allAtOnce() async throws {
        let nginx = try NginxServer()
        let downloader = try makeDownloader { $0.maxConcurrentDownloads = 4 }
        let errors = await withTaskGroup(of: WebImageError?.self) { group in
            for index in 0..<100 { group.addTask { await downloader.failure(nginx.url("/\(index)")) } }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(errors.allSatisfy { $0?.code == .secureConnectionFailed && $0?.underlyingCode == 60 }, "\(errors)")
        #expect(errors.count { $0?.tries == 1 } <= 4)
        // Neither those that allow it nor those without TLS are concerned.
        let allowed = try await downloader.download(nginx.url("/a"), options: .allowInvalidSSLCertificates)
        #expect(allowed.statusCode == 200)
        #expect(await downloader.failure("http://127.0.0.1:\(nginx.port)/")?.code == .invalidDownloadStatusCode)
    }
}
