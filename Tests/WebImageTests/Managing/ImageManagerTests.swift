import Origin
import TestSupport
import Testing

@testable import WebImage

@Suite("ImageManager", .timeLimit(.minutes(5)))
struct ImageManagerTests {
    private let origin: OriginServer
    private let folder = TemporaryDirectory()

    init() async throws {
        origin = try OriginServer()
    }

    private func manager(
        _ configure: (inout ImageManager.Configuration) -> Void = { _ in }
    ) throws -> ImageManager {
        var configuration = ImageManager.Configuration()
        configure(&configuration)
        var downloads = ImageDownloader.Configuration()
        downloads.addressPolicy = AddressPolicy(allow: [CIDR("127.0.0.0/8")!])
        downloads.retryBaseDelay = 0.001
        return try ImageManager(
            cache: ImageCache(directory: folder.path("cache")), downloads: downloads, configuration: configuration)
    }

    private func failure(
        _ manager: ImageManager, _ url: String, _ options: WebImageOptions = []
    ) async -> WebImageError? {
        do throws(WebImageError) {
            _ = try await manager.loadImage(with: url, options: options)
            return nil
        } catch {
            return error
        }
    }

    @Test(
        "The first load downloads, stores and describes; the others are hits without a request, from memory or from the disk"
    )
    func loadTwice() async throws {
        let bytes = GeneratedImage.png(seed: 7, width: 31, height: 17)
        origin.route("/a.png", OriginResponse(body: bytes))
        let manager = try manager()
        let url = origin.url("/a.png")
        let first = try await manager.loadImage(with: url)
        #expect(first.outcome == .downloaded)
        #expect(first.cacheType == .none)
        #expect((first.info.width, first.info.height) == (31, 17))
        #expect(first.info.format == .png)
        #expect(first.sha256 == SHA256.hash(bytes).bytes)
        #expect(first.tries == 1)
        #expect(readFile(try #require(first.path)) == bytes)
        // Another manager's memory is empty: it finds the file, and has it in memory from then on.
        let other = try self.manager()
        for (manager, cacheType) in [(manager, ImageCacheType.memory), (other, .disk), (other, .memory)] {
            let hit = try await manager.loadImage(with: url)
            #expect(hit.outcome == .hit)
            #expect(hit.cacheType == cacheType)
            #expect(hit.path == first.path)
            #expect(hit.sha256 == first.sha256)
            #expect((hit.info, hit.byteCount, hit.tries) == (first.info, bytes.count, 0))
        }
        #expect(origin.requestCount() == 1)
    }

    @Test("Many tasks that want one image cause one request")
    func coalesced() async throws {
        origin.route("/a.jpg", OriginResponse(body: GeneratedImage.jpeg(seed: 1, width: 40, height: 40)))
        let manager = try manager()
        let url = origin.url("/a.jpg")
        let outcomes = try await withThrowingTaskGroup(of: PrefetchOutcome.self) { group in
            for _ in 0..<50 { group.addTask { try await manager.loadImage(with: url).outcome } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(outcomes.count { $0 == .downloaded } == 1)
        #expect(outcomes.count { $0 == .hit } == 49)
        #expect(origin.requestCount() == 1)
    }

    @Test("A 404 is remembered, retryFailed asks again, and a success forgets it")
    func failedURLs() async throws {
        origin.route(
            "/a.png",
            sequence: [
                OriginResponse(status: 404), OriginResponse(body: GeneratedImage.png(seed: 1, width: 9, height: 9)),
            ])
        let manager = try manager()
        let url = origin.url("/a.png")
        #expect(await failure(manager, url)?.httpStatus == 404)
        #expect(await failure(manager, url)?.code == .blackListed)
        #expect(origin.requestCount() == 1)
        let image = try await manager.loadImage(with: url, options: .retryFailed)
        #expect(image.outcome == .downloaded)
        #expect(manager.failedURLs.count == 0)
    }

    @Test("What is no whole image is never published", arguments: ["html", "cut", "empty"])
    func badImages(kind: String) async throws {
        let picture = GeneratedImage.jpeg(seed: 3, width: 64, height: 64)
        let body: [UInt8] =
            switch kind {
            case "html": Array("<html>no picture</html>".utf8)
            case "cut": Array(picture.prefix(picture.count - 40))
            default: []
            }
        origin.route("/a.jpg", OriginResponse(body: body))
        let manager = try manager()
        let error = await failure(manager, origin.url("/a.jpg"))
        #expect(error?.code == .badImageData)
        #expect(error?.outcome == .badImage)
        #expect(origin.requestCount() == 1)
        #expect(manager.failedURLs.count == 1)
        #expect(try manager.cache.disk.audit.count().images == 0)
    }

    @Test("A body that only the end of the connection ended is asked for again, and is lost, not bad")
    func cutWithoutALength() async throws {
        let picture = GeneratedImage.png(seed: 3, width: 64, height: 64)
        var cut = OriginResponse(body: Array(picture.prefix(picture.count / 2)))
        cut.framing = .untilClose
        cut.closesConnection = true
        origin.route("/a.png", cut)
        let manager = try manager()
        let error = await failure(manager, origin.url("/a.png"))
        #expect(error?.outcome == .truncated)
        #expect(error?.tries == 3)
        #expect(origin.requestCount() == 3)
        #expect(manager.failedURLs.count == 0)
        // As often as the load's own profile says.
        origin.route("/b.png", cut)
        var request = LoadRequest(url: origin.url("/b.png"), key: origin.url("/b.png"))
        request.profile = try await manager.downloader.profile { $0.maxTries = 1 }
        await #expect(throws: WebImageError.self) { try await manager.pipeline.load(request) }
        #expect(origin.requestCount("/b.png") == 1)
    }

    @Test("A format without a check ends unsupported and is not listed; who keeps such images has it at level header")
    func unverifiable() async throws {
        let svg = Array("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1\" height=\"1\"/>".utf8)
        origin.route("/a.svg", OriginResponse(body: svg))
        let strict = try manager()
        let error = await failure(strict, origin.url("/a.svg"))
        #expect(error?.outcome == .unsupported && error?.unverifiedFormat == .svg)
        #expect(error?.message == "SVG cannot be verified" && error?.httpStatus == 200 && error?.tries == 1)
        #expect(strict.failedURLs.count == 0 && strict.cache.disk.existingPath(forKey: origin.url("/a.svg")) == nil)
        let keeping = try manager { $0.unverifiableFormats = .keep }
        let kept = try await keeping.loadImage(with: origin.url("/a.svg"))
        #expect(kept.outcome == .downloaded && kept.info.format == .svg && kept.info.level == .header)
        // From memory and, by another manager, from the disk; who does not keep such images asks again and leaves the file.
        let other = try manager { $0.unverifiableFormats = .keep }
        for again in [keeping, other] {
            #expect(try await again.loadImage(with: origin.url("/a.svg")).outcome == .hit)
        }
        let skipping = try manager()
        #expect(await failure(skipping, origin.url("/a.svg"))?.outcome == .unsupported)
        #expect(readFile(try #require(kept.path)) == svg)
        #expect(origin.requestCount() == 3)
        let lenient = try manager { $0.validation = .header }
        #expect(try await lenient.loadImage(with: origin.url("/a.svg")).info.format == .svg)
    }

    @Test("A JPEG of a kind that the library does not decode is unsupported, not damaged")
    func unsupportedKinds() async throws {
        var arithmetic = GeneratedImage.jpeg(seed: 1, width: 24, height: 24)
        for place in arithmetic.indices.dropLast() where arithmetic[place] == 0xFF && arithmetic[place + 1] == 0xC0 {
            arithmetic[place + 1] = 0xC9
        }
        origin.route("/a.jpg", OriginResponse(body: arithmetic))
        let error = await failure(try manager(), origin.url("/a.jpg"))
        #expect(error?.outcome == .unsupported && error?.unverifiedFormat == .jpeg, "\(error?.message ?? "")")
        let keeping = try manager { $0.unverifiableFormats = .keep }
        #expect(try await keeping.loadImage(with: origin.url("/a.jpg")).info.level == .header)
    }

    @Test("A file that passed less is verified on the hit, and raised or replaced")
    func raised() async throws {
        let picture = GeneratedImage.jpeg(seed: 3, width: 64, height: 64)
        var damaged = picture
        damaged.removeLast(60)
        origin.route("/good.jpg", OriginResponse(body: picture))
        origin.route("/bad.jpg", sequence: [OriginResponse(body: damaged), OriginResponse(body: picture)])
        let lenient = try manager { $0.validation = .header }
        let (good, bad) = (origin.url("/good.jpg"), origin.url("/bad.jpg"))
        _ = try await lenient.loadImage(with: good)
        _ = try await lenient.loadImage(with: bad)
        let strict = try manager()
        let raised = try await strict.loadImage(with: good)
        #expect(raised.outcome == .hit)
        #expect(raised.info.level == .decode)
        #expect(origin.requestCount("/good.jpg") == 1)
        let replaced = try await strict.loadImage(with: bad)
        #expect(replaced.outcome == .downloaded)
        #expect(readFile(try #require(replaced.path)) == picture)
        #expect(origin.requestCount("/bad.jpg") == 2)
    }

    @Test("fromCacheOnly asks nobody")
    func fromCacheOnly() async throws {
        let manager = try manager()
        let error = await failure(manager, origin.url("/a.png"), .fromCacheOnly)
        #expect(error?.code == .notCached)
        #expect(origin.requestCount() == 0)
    }

    @Test("Policies list what they say", arguments: FailedURLPolicy.allCases)
    func policies(policy: FailedURLPolicy) {
        func lists(_ code: WebImageError.Code, status: Int? = nil) -> Bool {
            policy.lists(WebImageError(code, "", httpStatus: status))
        }
        let statuses = [404, 410, 451, 401, 403, 407, 429, 503].filter { lists(.invalidDownloadStatusCode, status: $0) }
        let never: [WebImageError.Code] = [
            .refused, .tooLarge, .invalidURL, .cancelled, .notCached, .digestMismatch, .localFault, .timedOut,
            .cannotFindHost, .cannotConnectToHost, .blackListed,
        ]
        #expect(never.filter { lists($0) } == [])
        switch policy {
        case .smart:
            #expect(statuses == [404, 410, 451])
            #expect(lists(.badImageData) && !lists(.connectionLost) && !lists(.secureConnectionFailed))
        case .sd3:
            #expect(statuses == [404, 410, 451, 403, 429, 503])
            #expect(lists(.badImageData) && lists(.connectionLost) && lists(.secureConnectionFailed))
        case .sd4:
            #expect(statuses == [])
            #expect(lists(.badImageData) && !lists(.connectionLost) && lists(.secureConnectionFailed))
        case .none:
            #expect(statuses == [] && !lists(.badImageData))
        }
        #expect(!lists(.unsupportedFormat))
    }
}
