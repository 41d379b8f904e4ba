import Glibc
import Origin
import TestSupport
import Testing
import Threading

@testable import WebImage

/// SDWebImage 5.21's tests of SDWebImageDownloader, against a loopback origin. Its downloader hands out decoded images; ours hands out
/// bytes, and the coder says whether they are one.
///
/// 13 is about a whole process and stands with the tests of the programs. Not here are 06 (another class for operations), 09, 18, 19 and 28
/// (half an image on a screen), and 30 (thumbnails), which is manager 19 here; 22 is in PortedManagerPixelTests.
@Suite("Ported SDWebImageDownloaderTests", .timeLimit(.minutes(5)))
struct PortedDownloaderTests {
    private let origin: OriginServer
    private let downloader: ImageDownloader

    init() throws {
        origin = try OriginServer()
        downloader = try makeDownloader()
    }

    /// Image and data, as one completion of the original gives them.
    private func image(_ url: String) async throws(WebImageError) -> (info: ImageInfo, data: [UInt8]) {
        let data = try await downloader.download(url).body.bytes
        return (try ImageCoder().verify(data, level: .decode), data)
    }

    private func failure(_ url: String) async -> WebImageError? {
        do throws(WebImageError) {
            _ = try await image(url)
            return nil
        } catch {
            return error
        }
    }

    @Test("SDWebImageDownloaderTests 01 ThatSharedDownloaderIsNotEqualToInitDownloader")
    func shared() async {
        await #expect(processExitsWith: .success) {
            let folder = TemporaryDirectory()
            setenv("XDG_CACHE_HOME", folder.path, 1)
            let downloader = try ImageDownloader()
            let (shared, again) = (try ImageDownloader.shared, try ImageDownloader.shared)
            precondition(downloader !== shared && shared === again)
        }
    }

    /// The original's is `image/*,*/*;q=0.8`; ours is that of the versions before, which asks for images alone.
    @Test("SDWebImageDownloaderTests 02 ThatByDefaultDownloaderSetsTheAcceptHTTPHeader")
    func acceptHeader() async throws {
        let accept = ImageDownloader.Configuration().headers.filter { $0.name == "Accept" }
        #expect(accept == [HTTPHeader("Accept", "image/*;q=0.8")])
        origin.route("/a.jpg", OriginResponse(body: Sample.baselineJPEG.bytes))
        _ = try await image(origin.url("/a.jpg"))
        #expect(origin.requests.map { $0.header("Accept") } == ["image/*;q=0.8"])
    }

    @Test("SDWebImageDownloaderTests 03 ThatSetAndGetValueForHTTPHeaderFieldWork")
    func headerField() async throws {
        let (name, value) = ("X-Test-Header", "header-value")
        try await downloader.setValue(value, forHTTPHeaderField: name)
        #expect(await downloader.value(forHTTPHeaderField: name) == value)
        try await downloader.setValue(nil, forHTTPHeaderField: name)
        #expect(await downloader.value(forHTTPHeaderField: name) == nil)
    }

    @Test("SDWebImageDownloaderTests 04 ThatASimpleDownloadWorks")
    func simpleDownload() async throws {
        origin.route("/50x50.jpg", OriginResponse(body: Sample.baselineJPEG.bytes))
        let (info, data) = try await image(origin.url("/50x50.jpg"))
        #expect(data == Sample.baselineJPEG.bytes)
        #expect(
            info
                == ImageInfo(
                    format: .jpeg, width: Sample.width, height: Sample.height, level: .decode, colorSpace: .rgb))
        #expect(await downloader.currentDownloadCount == 0)
        #expect(origin.requestCount() == 1)
    }

    @Test("SDWebImageDownloaderTests 05 ThatSetAndGetMaxConcurrentDownloadsWorks")
    func maxConcurrentDownloads() async throws {
        #expect(await downloader.maxConcurrentDownloads == 6)
        await downloader.setMaxConcurrentDownloads(3)
        #expect(await downloader.maxConcurrentDownloads == 3)
        // It holds: of eight that wait three run.
        origin.setFallback { _ in OriginResponse(body: Sample.png.bytes, fault: .stallBeforeHeader) }
        let loads = (0..<8).map { index in Task { await failure(origin.url("/\(index)")) } }
        await origin.waitForRequests(3)
        try await until { await downloader.currentDownloadCount == 8 }
        #expect(await downloader.activeDownloadCount == 3)
        for index in 0..<8 { origin.release("/\(index)") }
        for load in loads { #expect(await load.value == nil) }
        #expect(origin.maxConcurrentRequestsSeen == 3)
        await downloader.setMaxConcurrentDownloads(6)
        #expect(await downloader.maxConcurrentDownloads == 6)
    }

    /// A URL is a text here and never nil; what stands for it is the empty one.
    @Test("SDWebImageDownloaderTests 07 ThatDownloadImageWithNilURLCallsCompletionWithNils")
    func nilURL() async {
        #expect(await failure("")?.code.rawValue == 1000)
        #expect(await downloader.currentDownloadCount == 0)
        #expect(origin.connectionCount == 0)
    }

    @Test("SDWebImageDownloaderTests 08 ThatAHTTPAuthDownloadWorks")
    func authentication() async throws {
        origin.route("/basic-auth/foo/bar") { request in
            request.header("Authorization") == "Basic Zm9vOmJhcg=="
                ? OriginResponse(body: Sample.png.bytes)
                : OriginResponse(status: 401, headers: [("WWW-Authenticate", #"Basic realm="Fake Realm""#)])
        }
        let url = origin.url("/basic-auth/foo/bar")
        #expect(await failure(url)?.httpStatus == 401)
        let downloader = try makeDownloader { $0.credentials = [Credential(user: "foo", password: "bar")] }
        #expect(try await downloader.download(url).body.bytes == Sample.png.bytes)
    }

    @Test("SDWebImageDownloaderTests 10 That404CaseCallsCompletionWithError")
    func notFound() async {
        let error = await failure(origin.url("/44771656:jpeg_preview_small.jpg?20120509154705"))
        #expect(error?.code.rawValue == 2001)
        #expect(error?.httpStatus == 404)
        #expect(origin.requestCount() == 1)
        #expect(await downloader.currentDownloadCount == 0)
    }

    @Test("SDWebImageDownloaderTests 11 ThatCancelWorks")
    func cancelling() async throws {
        origin.route("/1000x1000.png", OriginResponse(body: Sample.png.bytes, fault: .stall(after: 10)))
        let url = origin.url("/1000x1000.png")
        let load = Task { await failure(url) }
        await origin.waitForRequests(1)
        #expect(await downloader.currentDownloadCount == 1)
        load.cancel()
        #expect(await load.value?.code.rawValue == 2002)
        #expect(await downloader.currentDownloadCount == 0)
        try await until { origin.openConnectionCount == 0 }
    }

    @Test("SDWebImageDownloaderTests 11 ThatCancelAllDownloadWorks")
    func cancellingAll() async throws {
        origin.setFallback { _ in OriginResponse(body: Sample.png.bytes, fault: .stallBeforeHeader) }
        let before = await downloader.currentDownloadCount
        let urls = ["/a.png", "/b.png"].map { origin.url($0) }
        var loads: [Task<WebImageError?, Never>] = []
        for (index, url) in urls.enumerated() {
            loads.append(Task { await failure(url) })
            await origin.waitForRequests(index + 1)
            #expect(await downloader.currentDownloadCount == before + index + 1)
        }
        await downloader.cancelAllDownloads()
        #expect(await downloader.currentDownloadCount == 0)
        for load in loads { #expect(await load.value?.code.rawValue == 2002) }
    }

    /// The original makes an operation with a session of its own; here the downloader gets a new one.
    @Test("SDWebImageDownloaderTests 12 ThatWeCanUseAnotherSessionForEachDownloadOperation")
    func anotherSession() async throws {
        origin.setFallback { _ in OriginResponse(body: Sample.baselineJPEG.bytes) }
        var configuration = await downloader.configuration
        for number in 1...2 {
            configuration.setValue("\(number)", forHTTPHeaderField: "X-Session")
            try await downloader.createNewSession(configuration: configuration)
            #expect(try await image(origin.url("/50x50.jpg")).data == Sample.baselineJPEG.bytes)
        }
        #expect(origin.requests.map { $0.header("X-Session") } == ["1", "2"])
        #expect(origin.connectionCount == 2)
    }

    @Test("SDWebImageDownloaderTests 14 ThatPNGWorks")
    func png() async throws {
        origin.route("/50x50.png", OriginResponse(body: Sample.png.bytes))
        let (info, data) = try await image(origin.url("/50x50.png"))
        #expect(data == Sample.png.bytes)
        #expect(
            info
                == ImageInfo(format: .png, width: Sample.width, height: Sample.height, level: .decode, colorSpace: .rgb)
        )
    }

    @Test("SDWebImageDownloaderTests 15 DownloaderLIFOExecutionOrder")
    func lifo() async throws {
        let downloader = try makeDownloader {
            $0.maxConcurrentDownloads = 1
            $0.executionOrder = .lifo
        }
        let origin = origin
        origin.setFallback { _ in OriginResponse(body: Sample.png.bytes, fault: .stallBeforeHeader) }
        func add(_ numbers: ClosedRange<Int>) async throws -> [Task<Void, any Error>] {
            var loads: [Task<Void, any Error>] = []
            let before = await downloader.currentDownloadCount
            for number in numbers {
                let url = origin.url("/\(number)")
                loads.append(Task { _ = try await downloader.download(url) })
                // One after the other, as the original adds them.
                try await until { await downloader.currentDownloadCount == before + loads.count }
            }
            return loads
        }
        var loads = try await add(1...7)
        // The first has begun before the others came; the newest of those is next.
        await origin.waitForRequests(1, to: "/1")
        origin.release("/1")
        await origin.waitForRequests(1, to: "/7")
        loads += try await add(8...14)
        for number in 2...14 { origin.release("/\(number)") }
        for load in loads { try await load.value }
        // The order of the requests: in which order the tasks that wait for them run on is the scheduler's.
        #expect(origin.requests.map(\.path) == [1, 7, 14, 13, 12, 11, 10, 9, 8, 6, 5, 4, 3, 2].map { "/\($0)" })
    }

    @Test("SDWebImageDownloaderTests 17 ThatMinimumProgressIntervalWorks")
    func minimumProgressInterval() async throws {
        let body = pseudoImage(100_000)
        origin.route("/a.jpg", OriginResponse(body: body, fault: .drip(bytes: 5_000, seconds: 0.001)))
        let downloader = try makeDownloader { $0.minimumProgressInterval = 0.51 }
        let told = Told()
        _ = try await downloader.download(origin.url("/a.jpg")) { told.append($0, $1) }
        // Unknown, 0 %, once past 51 %, 100 %.
        let calls = told.calls
        #expect((3...4).contains(calls.count))
        #expect(calls.prefix(2) == [[0, -1], [0, body.count]] && calls.last == [body.count, body.count])
        #expect(calls.dropFirst(2).allSatisfy { $0[0] >= 51_000 })
    }

    @Test("SDWebImageDownloaderTests 20 ThatDownloadingSameURLTwiceAndCancellingFirstWorks")
    func cancellingTheFirst() async throws {
        origin.route("/a.jpg", OriginResponse(body: Sample.baselineJPEG.bytes, fault: .stallBeforeHeader))
        let url = origin.url("/a.jpg")
        let first = Task { await failure(url) }
        await origin.waitForRequests(1)
        let second = Task { try await image(url).data }
        try await until { await downloader.states(of: [url])[url]?.callers == 2 }
        first.cancel()
        #expect(await first.value?.code.rawValue == 2002)
        #expect(await downloader.currentDownloadCount == 1)
        origin.release("/a.jpg")
        #expect(try await second.value == Sample.baselineJPEG.bytes)
        #expect(origin.requestCount() == 1)
    }

    @Test("SDWebImageDownloaderTests 21 ThatCancelingDownloadThenRequestingAgainWorks")
    func cancellingThenAgain() async throws {
        origin.route(
            "/a.jpg",
            sequence: [
                OriginResponse(fault: .stallBeforeHeader), OriginResponse(body: Sample.baselineJPEG.bytes),
            ])
        let url = origin.url("/a.jpg")
        let first = Task { await failure(url) }
        await origin.waitForRequests(1)
        first.cancel()
        #expect(await first.value?.code.rawValue == 2002)
        #expect(try await image(url).data == Sample.baselineJPEG.bytes)
        #expect(origin.requestCount() == 2)
        #expect(await downloader.currentDownloadCount == 0)
    }

    @Test("SDWebImageDownloaderTests 23 ThatDownloadRequestModifierWorks")
    func requestModifier() async throws {
        origin.setFallback { _ in OriginResponse(body: Sample.png.bytes) }
        let downloader = try makeDownloader {
            $0.requestModifier = { request in
                guard request.url.hasSuffix("/a.png") else { return nil }
                var request = request
                request.url += "?text=Hello%20World"
                request.setValue("Bar", forHTTPHeaderField: "Foo")
                return request
            }
        }
        _ = try await downloader.download(origin.url("/a.png"))
        #expect(origin.requests.map(\.path) == ["/a.png?text=Hello%20World"])
        #expect(origin.requests.first?.header("Foo") == "Bar")
        #expect(await downloader.failure(origin.url("/b.png"))?.code.rawValue == 2000)
        #expect(origin.requestCount() == 1)
        #expect(await downloader.currentDownloadCount == 0)
    }

    @Test("SDWebImageDownloaderTests 24 ThatDownloadResponseModifierWorks")
    func responseModifier() async throws {
        origin.setFallback { _ in OriginResponse(headers: [("Foo", "Bar")], body: Sample.png.bytes) }
        let downloader = try makeDownloader {
            $0.responseModifier = { response in
                guard !response.url.hasSuffix("/nil.png"), response.value(forHTTPHeaderField: "foo") == "Bar" else {
                    return nil
                }
                var response = response
                response.statusCode = 404
                return response
            }
        }
        let error = await downloader.failure(origin.url("/a.png"))
        #expect(error?.code.rawValue == 2001 && error?.httpStatus == 404)
        #expect(await downloader.failure(origin.url("/nil.png"))?.code.rawValue == 2003)
    }

    /// It is the manager that decrypts here: the downloader hands out what came.
    @Test("SDWebImageDownloaderTests 25 ThatDownloadDecryptorWorks")
    func decryptor() async throws {
        let fixture = try ManagerFixture()
        let plain = Sample.png.bytes
        fixture.origin.setFallback { _ in OriginResponse(body: plain.map { $0 ^ 0x55 }) }
        let manager = try fixture.manager(configure: {
            $0.decryptor = { body, url in
                guard url.hasSuffix("/a.png"), let bytes = try? body.bytes else { return nil }
                return bytes.map { $0 ^ 0x55 }
            }
        })
        let image = try await manager.loadImage(with: fixture.origin.url("/a.png"))
        #expect(readFile(try #require(image.path)) == plain && image.info.width == Sample.width)
        #expect(await manager.failure(fixture.origin.url("/b.png"))?.code.rawValue == 1001)
        // Without it the bytes are no image.
        let other = try fixture.manager(cache: ImageCache(directory: fixture.folder.path("other")))
        #expect(await other.failure(fixture.origin.url("/a.png"))?.code.rawValue == 1001)
    }

    @Test("SDWebImageDownloaderTests 26 DownloadURLSessionMetrics")
    func metrics() async throws {
        origin.route("/a.png", OriginResponse(body: Sample.png.bytes))
        let timing = try await downloader.download(origin.url("/a.png")).timing
        // One transaction: fetch from 0 to total, connect within it.
        #expect(!timing.reusedConnection && timing.connect > 0)
        #expect(timing.nameLookup <= timing.connect && timing.connect <= timing.firstByte)
        #expect(timing.firstByte <= timing.total)
        #expect(try await downloader.download(origin.url("/a.png")).timing.reusedConnection)
    }

    @Test("SDWebImageDownloaderTests 27 DownloadShouldCallbackWhenURLSessionRunning", arguments: [false, true])
    func cancellingARunningLoad(waits: Bool) async throws {
        let fixture = try ManagerFixture()
        let (url, _) = fixture.image("/SDWebImage_logo.png", fault: .stallBeforeHeader)
        let manager = try fixture.manager()
        try await manager.cache.removeImage(forKey: manager.cacheKey(for: url))
        let load = Task { await manager.failure(url) }
        if waits { await fixture.origin.waitForRequests(1) }
        load.cancel()
        #expect(await load.value?.code.rawValue == 2002)
        #expect(!manager.isRunning)
        try await until { await manager.downloader.currentDownloadCount == 0 }
    }

    @Test("SDWebImageDownloaderTests 29 AcceptableStatusCodeAndContentType")
    func acceptable() async throws {
        origin.route("/a.jpg", OriginResponse(headers: [("Content-Type", "image/jpeg")], body: Sample.png.bytes))
        let url = origin.url("/a.jpg")
        let statuses = try makeDownloader { $0.acceptableStatusCodes = [201...299] }
        let status = await statuses.failure(url)
        #expect(status?.code.rawValue == 2001 && status?.httpStatus == 200)
        let types = try makeDownloader { $0.acceptableContentTypes = ["application/json"] }
        let type = await types.failure(url)
        #expect(type?.code.rawValue == 2004 && type?.message.contains("image/jpeg") == true)
    }

    @Test("SDWebImageDownloaderTests 31 ThatMultipleRequestForSameURLNeverSkipCallback")
    func neverSkipped() async throws {
        origin.route("/a.png", OriginResponse(body: Sample.png.bytes, delay: 0.005))
        let url = origin.url("/a.png")
        let images = try await withThrowingTaskGroup(of: [UInt8].self) { group in
            for index in 0..<200 {
                group.addTask {
                    // Each begins when the one before has moved things on a little.
                    try await until { origin.requestCount() >= min(index / 40, 1) }
                    for _ in 0..<index { await Task.yield() }
                    return try await image(url).data
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(images.count == 200)
        #expect(images.allSatisfy { $0 == Sample.png.bytes })
        #expect((1..<200).contains(origin.requestCount()))
        #expect(await downloader.currentDownloadCount == 0)
    }

    @Test("SDWebImageDownloaderTests 31 ThatMultipleRequestForSameURLFailedCallback")
    func everyFailureIsTold() async throws {
        origin.route("/file", OriginResponse(delay: 0.005))
        let url = origin.url("/file")
        let codes = await withTaskGroup(of: Int?.self) { group in
            for index in 0..<10 {
                group.addTask {
                    for _ in 0..<(index * 10) { await Task.yield() }
                    return await failure(url)?.code.rawValue
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(codes == [Int?](repeating: 1001, count: 10))
        #expect((1...10).contains(origin.requestCount()))
        #expect(await downloader.currentDownloadCount == 0)
    }
}
