import Glibc
import Origin
import Prefetch
import Redis
import TestSupport
import Testing
import Threading
import WebImage

@Suite("One request for all that wait for a URL that fails", .timeLimit(.minutes(5)))
struct SharedFailureTests {
    private func manager(_ folder: TemporaryDirectory) throws -> ImageManager {
        var downloads = ImageDownloader.Configuration()
        downloads.addressPolicy = AddressPolicy(allow: [CIDR("127.0.0.0/8")!])
        downloads.maxTries = 1
        return try ImageManager(cache: ImageCache(directory: folder.path("cache")), downloads: downloads)
    }

    @Test("Eight loads of one manager: one request, and its error for all")
    func manager() async throws {
        let (origin, folder) = (try OriginServer(), TemporaryDirectory())
        origin.route("/a.png", OriginResponse(status: 503, delay: 0.5))
        let manager = try manager(folder)
        let errors = await withTaskGroup(of: WebImageError?.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    do throws(WebImageError) {
                        _ = try await manager.loadImage(with: origin.url("/a.png"), options: .retryFailed)
                        return nil
                    } catch { return error }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(errors.allSatisfy { $0?.httpStatus == 503 }, "\(errors)")
        #expect(errors.map { $0?.tries ?? -1 }.sorted() == [0, 0, 0, 0, 0, 0, 0, 1])
        #expect(origin.requestCount() == 1)
        // Who asks afterwards asks for itself.
        await #expect(throws: WebImageError.self) {
            try await manager.loadImage(with: origin.url("/a.png"), options: .retryFailed)
        }
        #expect(origin.requestCount() == 2)
    }

    @Test("Who asks in another way has its own answer")
    func others() async throws {
        let (origin, folder) = (try OriginServer(), TemporaryDirectory())
        let picture = GeneratedImage.png(seed: 4, width: 8, height: 8)
        origin.setFallback { request in
            request.header("X-Key") == "right" ? OriginResponse(body: picture) : OriginResponse(status: 403, delay: 0.5)
        }
        let manager = try manager(folder)
        let closed = manager.startLoad(with: origin.url("/a.png"), options: .retryFailed)
        await origin.waitForRequests(1)
        var open = ImageRequest(origin.url("/a.png"), options: .retryFailed)
        open.headers = [HTTPHeader("X-Key", "right")]
        let second = manager.startLoad(open)
        await #expect(throws: WebImageError.self) { try await closed.image }
        #expect(try await second.image.outcome == .downloaded)
        #expect(origin.requestCount() == 2)
    }

    /// What two processes of a queue tell each other, without a queue.
    private final class Told: FailureSharing {
        private let errors = Locked<[String: WebImageError]>([:])

        func tell(_ error: WebImageError, question: String) async { errors.withLock { $0[question] = error } }
        func error(question: String) async -> WebImageError? { errors.withLock { $0[question] } }
    }

    @Test("Several loads that wait for another process: all have its error")
    func waiting() async throws {
        let (origin, folder, told) = (try OriginServer(), TemporaryDirectory(), Told())
        origin.route("/a.png", OriginResponse(status: 404, fault: .stallBeforeHeader))
        let url = origin.url("/a.png")
        var request = LoadRequest(url: url, key: url)
        (request.sharing, request.options) = (told, .retryFailed)
        // Two managers of one folder have a lock each, as two processes.
        let (first, second) = (try manager(folder), try manager(folder))
        let errors = await withTaskGroup(of: WebImageError?.self) { group in
            func add(_ manager: ImageManager) {
                group.addTask { [request] in
                    do throws(WebImageError) {
                        _ = try await manager.load(request)
                        return nil
                    } catch { return error }
                }
            }
            add(first)
            await origin.waitForRequests(1)
            for _ in 0..<8 { add(second) }
            let transfers = second.cache.transfers
            while transfers.waitingOnOtherProcesses == 0 || transfers.waiting(for: CacheKey(url)) < 7 {
                await Task.yield()
            }
            origin.release("/a.png")
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(errors.allSatisfy { $0?.httpStatus == 404 }, "\(errors)")
        #expect(errors.map { $0?.tries ?? -1 }.sorted() == [0, 0, 0, 0, 0, 0, 0, 0, 1])
        #expect(origin.requestCount() == 1)
    }

    @Test(
        "Batches of one worker, and of several over the queue: one request; with other settings each its own",
        arguments: [1, 3])
    func batches(workers count: Int) async throws {
        let bench = try await FaultBench(appendOnly: false)
        bench.origin.setFallback { _ in OriginResponse(status: 404, fault: .stallBeforeHeader) }
        let workers = try await bench.workers(count)
        try await bench.untilReady(workers)
        for name in ["a", "b", "c"] {
            let words = ["submit", bench.list(3, "urls"), "--name", name, "--job-size", "1", "--blacklist", "none"]
            try await bench.done(words)
        }
        // No request ends before all nine URLs want its answer.
        try await until {
            var wanting = 0
            for name in ["a", "b", "c"] {
                guard let status = try await bench.queue.batches.status(of: name) else { return false }
                let urls = try await bench.queue.openURLs.oldest(of: status)
                wanting += urls.count { [.transferring, .locked].contains($0.state) }
            }
            return wanting == 9
        }
        for number in 0..<3 { bench.origin.release("/urls/\(number).png") }
        for name in ["a", "b", "c"] {
            try await until { try await bench.queue.batches.status(of: name)?.state == .done }
            let counts = try #require(try await bench.queue.batches.status(of: name)).counts
            #expect(counts[.httpError] == 3 && counts.finished == 3, "\(counts)")
        }
        #expect(bench.origin.requestCount() == 3)
        bench.origin.setFallback { _ in OriginResponse(status: 404) }
        for (name, option) in [("d", ["--timeout", "7s"]), ("e", ["--header", "X-Key: 1"])] {
            try await bench.done(
                ["submit", bench.list(3, "urls"), "--name", name, "--job-size", "1", "--blacklist", "none"] + option)
        }
        for name in ["d", "e"] {
            try await until { try await bench.queue.batches.status(of: name)?.state == .done }
        }
        #expect(bench.origin.requestCount() == 9)
        try await bench.leave(workers)
        #expect(try await bench.done(["fsck"]).stdout.hasSuffix("everything agrees\n"))
    }

    @Test("An error in words is the same error")
    func note() throws {
        var error = WebImageError(
            .badImageData, "a page\nin two lines", reason: nil, httpStatus: 200, underlyingCode: -3, isTransient: true)
        error.page = PageMark(digest: .max, place: "portal/login here")
        let read = try #require(WebImageError(note: error.note))
        #expect(read.code == error.code && read.message == error.message && read.page == error.page)
        #expect(read.httpStatus == 200 && read.underlyingCode == -3 && read.isTransient && read.reason == nil)
        var other = WebImageError(.tooLarge, "", reason: .pixels)
        other.unverifiedFormat = .avif
        let again = try #require(WebImageError(note: other.note))
        #expect(
            again.reason == .pixels && again.unverifiedFormat == .avif && again.page == nil && again.httpStatus == nil)
        for text in ["", "x", "1 2 3 4 5 - -", "a b c d e - -\n\nm"] { #expect(WebImageError(note: text) == nil) }
    }
}
