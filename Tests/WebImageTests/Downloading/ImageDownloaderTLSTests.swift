import Testing

@testable import WebImage

@Suite(
    "ImageDownloader over TLS", .timeLimit(.minutes(5)),
    .enabled(if: NginxServer.isInstalled, "nginx and openssl are not installed"))
struct ImageDownloaderTLSTests {
    @Test("HTTP/2 carries many downloads on one connection")
    func multiplexes() async throws {
        let nginx = try NginxServer()
        let downloader = try makeDownloader {
            $0.caFile = nginx.certificate
            $0.usesHTTP2 = true
            $0.maxConcurrentDownloads = 32
        }
        let images = try await withThrowingTaskGroup(of: DownloadedImage.self) { group in
            for index in 0..<64 { group.addTask { try await downloader.download(nginx.url("/\(index)")) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(Set(images.map(\.httpVersion)) == ["2"])
        // nginx puts the connection's number into the ETag.
        #expect(Set(images.map(\.eTag)).count == 1)
        #expect(images.allSatisfy { $0.lengthWasAnnounced && $0.statusCode == 200 })
        #expect(Set(images.compactMap { try? $0.body.bytes }).count == 64)
        #expect(images.contains { $0.timing.tls > 0 })
    }

    @Test("A certificate nobody vouches for ends the download at once, unless it is allowed, and only there")
    func selfSigned() async throws {
        let nginx = try NginxServer()
        let downloader = try makeDownloader()
        let clock = ContinuousClock()
        let began = clock.now
        for isFirst in [true, false] {
            let error = try #require(await downloader.failure(nginx.url("/")))
            #expect(error.code == .secureConnectionFailed)
            // The second one ends without a request, unless so much time passes that the site is asked again.
            let isLate = clock.now - began >= .seconds(UntrustedSites.blockSeconds)
            #expect(error.tries == (isFirst ? 1 : 0) || isLate)
            #expect(!error.isTransient)
            #expect(error.underlyingCode == 60)
            let image = try await downloader.download(nginx.url("/"), options: .allowInvalidSSLCertificates)
            #expect(image.statusCode == 200)
        }
    }

    @Test("An expired certificate is a failure")
    func expired() async throws {
        let nginx = try NginxServer(isExpired: true)
        let downloader = try makeDownloader { $0.caFile = nginx.certificate }
        let error = await downloader.failure(nginx.url("/"))
        #expect(error?.code == .secureConnectionFailed && error?.tries == 1)
        #expect(error?.message.contains("expired") == true)
        #expect(try await downloader.download(nginx.url("/"), options: .allowInvalidSSLCertificates).statusCode == 200)
    }

    @Test("A certificate of another host is a failure")
    func otherHost() async throws {
        let nginx = try NginxServer(names: "DNS:good.example")
        let downloader = try makeDownloader {
            $0.caFile = nginx.certificate
            $0.resolve = ["good.example:\(nginx.port):127.0.0.1", "bad.example:\(nginx.port):127.0.0.1"]
        }
        #expect(try await downloader.download(nginx.url("/", host: "good.example")).statusCode == 200)
        let error = await downloader.failure(nginx.url("/", host: "bad.example"))
        #expect(error?.code == .secureConnectionFailed && error?.tries == 1)
    }

    @Test("TLS 1.0 is too old")
    func oldVersion() async throws {
        let nginx = try NginxServer(protocols: "TLSv1")
        let downloader = try makeDownloader { $0.caFile = nginx.certificate }
        let error = await downloader.failure(nginx.url("/"))
        #expect(error?.code == .secureConnectionFailed && error?.tries == 1)
    }

    @Test("A redirect out of TLS is refused")
    func downgrade() async throws {
        let nginx = try NginxServer()
        let downloader = try makeDownloader { $0.caFile = nginx.certificate }
        let error = await downloader.failure(nginx.url("/down"))
        #expect(error?.code == .refused && error?.tries == 1)
        #expect(error?.message == "redirected from https to http")
    }

    @Test("Authorities that cannot be read are our fault")
    func missingAuthorities() async throws {
        let nginx = try NginxServer()
        let downloader = try makeDownloader { $0.caFile = "/no/such/file" }
        #expect(await downloader.failure(nginx.url("/"))?.code == .localFault)
    }
}
