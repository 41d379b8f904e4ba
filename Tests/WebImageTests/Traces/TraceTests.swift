import Glibc
import Origin
import TestSupport
import Testing

@testable import WebImage

/// What a program that uses SDWebImage sees, call by call, for every flow of the articles: compared with `Tests/Golden/traces`, whose files
/// name the place that each flow is from. With TEST_GOLDEN=write they are written anew, to be read.
@Suite("Golden traces", .timeLimit(.minutes(5)))
struct TraceTests {
    enum Mode: String, CaseIterable {
        case usual = "default", sd3

        var compatibility: Compatibility? { Compatibility(rawValue: rawValue) }
    }

    /// An origin, a manager and a prefetcher of one mode, and what they call.
    struct Bench {
        let fixture: ManagerFixture
        let manager: ImageManager
        let prefetcher: ImagePrefetcher
        let trace: Trace

        init(_ mode: Mode, downloads: Bool = true, transforms: Bool = false) throws {
            fixture = try ManagerFixture()
            let compatibility = mode.compatibility
            let manager = try fixture.manager(
                configure: { if let compatibility { $0 = ImageManager.Configuration(compatibility: compatibility) } },
                downloads: {
                    $0.maxTries = 1
                    if let compatibility { $0.follow(compatibility) }
                })
            var configuration = ImagePrefetcher.Configuration()
            if let compatibility { configuration = ImagePrefetcher.Configuration(compatibility: compatibility) }
            // One at a time, so that the order of the URLs is the list's.
            configuration.maxConcurrentPrefetchCount = 1
            self.manager = manager
            prefetcher = ImagePrefetcher(manager: manager, configuration: configuration)
            trace = Trace(fixture.origin, downloads: downloads, transforms: transforms)
            manager.delegate = trace
            prefetcher.delegate = trace
        }

        var origin: OriginServer { fixture.origin }

        /// Loads, and writes down all calls and what is on the list of failed URLs.
        @discardableResult
        func load(_ path: String, _ options: WebImageOptions = []) async -> Result<LoadedImage, WebImageError> {
            trace.note("load \(path)\(options.isEmpty ? "" : " \(options.names.joined(separator: ", "))")")
            let url = path.isEmpty ? "" : origin.url(path)
            let operation = manager.startLoad(
                with: url, options: options, progress: trace.progress, completed: trace.completed(path))
            let result: Result<LoadedImage, WebImageError>
            do throws(WebImageError) { result = .success(try await operation.image) } catch { result = .failure(error) }
            if manager.failedURLs.contains(url) { trace.note("  on the list of failed URLs") }
            return result
        }

        func prefetch(_ paths: [String]) async {
            trace.note("prefetch \(paths.joined(separator: " "))")
            await prefetcher.prefetch(
                paths.map { origin.url($0) }, progress: trace.listProgress, completed: trace.listCompleted
            ).wait()
        }
    }

    /// One flow: what it is, where the articles describe it, and its steps.
    struct Flow: Sendable, CustomTestStringConvertible {
        let name: String
        /// `[n]` is the article of that number; then the class and what it says.
        let source: String
        let run: @Sendable (Mode) async throws -> [String]

        var testDescription: String { name }
    }

    static let flows: [Flow] = [
        Flow(
            name: "hit in memory",
            source: "[1] SDWebImageManager: the memory cache is asked first, and a hit completes without a download"
        ) { mode in
            let bench = try Bench(mode)
            let (url, bytes) = bench.fixture.image("/a.png")
            try await bench.manager.cache.store(bytes, forKey: url)
            await bench.load("/a.png")
            return bench.trace.text
        },
        Flow(
            name: "hit on disk",
            source: "[1] SDImageCache: what is not in memory is read from disk, and put into memory"
        ) { mode in
            let bench = try Bench(mode)
            let (url, bytes) = bench.fixture.image("/a.png")
            try await bench.manager.cache.store(bytes, forKey: url)
            bench.manager.cache.clearMemory()
            for _ in 0..<2 { await bench.load("/a.png") }
            return bench.trace.text
        },
        Flow(
            name: "miss",
            source:
                "[0] SDWebImageManager, [2] SDWebImageDownloader: delegate, progress (0, -1), (0, expected), (received, expected), completion; then it is cached"
        ) { mode in
            let bench = try Bench(mode)
            bench.origin.route("/a.png", OriginResponse(body: GeneratedImage.png(seed: 9, width: 9, height: 9)))
            for _ in 0..<2 { await bench.load("/a.png") }
            return bench.trace.text
        },
        Flow(
            name: "miss of unknown length",
            source:
                "[2] SDWebImageDownloaderOperation, didReceiveResponse: an expected length that is not positive is told as 0"
        ) { mode in
            let bench = try Bench(mode)
            bench.origin.route(
                "/a.png",
                OriginResponse(body: GeneratedImage.png(seed: 9, width: 9, height: 9), framing: .untilClose))
            await bench.load("/a.png")
            return bench.trace.text
        },
        Flow(
            name: "delegate refuses",
            source:
                "[0] SDWebImageManagerDelegate, shouldDownloadImageForURL: no image and no request if it says no; the URL has not failed"
        ) { mode in
            let bench = try Bench(mode, downloads: false)
            _ = bench.fixture.image("/a.png")
            await bench.load("/a.png")
            bench.trace.note("requests: \(bench.origin.requestCount())")
            return bench.trace.text
        },
        Flow(
            name: "failure",
            source:
                "[0] SDWebImageManager, completion of a download: a status of 400 and above is an error; which errors block the URL is a list of exemptions"
        ) { mode in
            let bench = try Bench(mode)
            bench.origin.route("/gone", OriginResponse(status: 404))
            bench.origin.route("/busy", OriginResponse(status: 503))
            bench.origin.route("/login", OriginResponse(status: 401))
            bench.origin.route("/page", OriginResponse(body: Array("<html>no picture</html>".utf8)))
            bench.origin.route("/reset", OriginResponse(body: [1, 2, 3], fault: .resetBeforeHeader))
            for path in ["/gone", "/busy", "/login", "/page", "/reset"] { await bench.load(path) }
            return bench.trace.text
        },
        Flow(
            name: "failed URL",
            source:
                "[0] SDWebImageManager: a URL that failed is not requested again, unless retryFailed is given; a download then takes it off the list"
        ) { mode in
            let bench = try Bench(mode)
            bench.manager.failedURLs.insert(bench.origin.url("/a.png"))
            await bench.load("/a.png")
            let body = GeneratedImage.png(seed: 9, width: 9, height: 9)
            bench.origin.route("/a.png", OriginResponse(body: body))
            await bench.load("/a.png", .retryFailed)
            await bench.load("/a.png")
            return bench.trace.text
        },
        Flow(
            name: "failed URL in the cache",
            source: "[0] SDWebImageManager: the list is asked before the cache, and only a download takes a URL off it"
        ) { mode in
            let bench = try Bench(mode)
            let (url, bytes) = bench.fixture.image("/a.png")
            try await bench.manager.cache.store(bytes, forKey: url)
            bench.manager.failedURLs.insert(url)
            await bench.load("/a.png")
            await bench.load("/a.png", .retryFailed)
            return bench.trace.text
        },
        Flow(
            name: "empty URL", source: "[0] SDWebImageManager: an empty URL ends with an error at once, finished"
        ) { mode in
            let bench = try Bench(mode)
            await bench.load("")
            return bench.trace.text
        },
        Flow(
            name: "refresh with 200",
            source:
                "[3] SDWebImageRefreshCached: if the cached image is refreshed, the completion is called twice, first with the cached image"
        ) { mode in
            let bench = try Bench(mode)
            let (url, bytes) = bench.fixture.image("/a.png", size: 5)
            try await bench.manager.cache.store(bytes, forKey: url)
            bench.origin.route("/a.png", OriginResponse(body: GeneratedImage.png(seed: 9, width: 9, height: 9)))
            await bench.load("/a.png", .refreshCached)
            return bench.trace.text
        },
        Flow(
            name: "refresh with 304",
            source: "[3] SDWebImageRefreshCached: an unchanged image is told once, as the cached one"
        ) { mode in
            let bench = try Bench(mode)
            let body = GeneratedImage.png(seed: 9, width: 9, height: 9)
            bench.origin.route("/a.png", OriginResponse(headers: [("ETag", "\"1\"")], body: body))
            for _ in 0..<2 { await bench.load("/a.png", .refreshCached) }
            return bench.trace.text
        },
        Flow(
            name: "refresh that fails",
            source:
                "[3] SDWebImageRefreshCached: the cached image was told; the failure of the request follows, and the image stays"
        ) { mode in
            let bench = try Bench(mode)
            let (url, bytes) = bench.fixture.image("/a.png", size: 5)
            try await bench.manager.cache.store(bytes, forKey: url)
            bench.origin.route("/a.png", OriginResponse(status: 500))
            await bench.load("/a.png", .refreshCached)
            bench.trace.note("in the cache: \(await bench.manager.diskImageExists(for: url))")
            return bench.trace.text
        },
        Flow(
            name: "progressive",
            source:
                "[0] SDWebImageProgressiveDownload: progress while bytes arrive; [3]: nothing is drawn here, so no partial image is told"
        ) { mode in
            let bench = try Bench(mode)
            bench.origin.route("/a.png", OriginResponse(body: GeneratedImage.png(seed: 9, width: 9, height: 9)))
            await bench.load("/a.png", .progressiveDownload)
            return bench.trace.text
        },
        Flow(
            name: "cancel before the request",
            source: "[0] SDWebImageCombinedOperation: a cancelled operation asks neither cache nor network"
        ) { mode in
            let bench = try Bench(mode)
            _ = bench.fixture.image("/a.png")
            let canceller = CancellingDelegate(.question)
            bench.manager.delegate = canceller
            bench.trace.note("load /a.png, cancelled by the delegate that is asked for it")
            let operation = bench.manager.startLoad(
                with: bench.origin.url("/a.png"), completed: bench.trace.completed("/a.png"))
            canceller.cancel(operation)
            _ = try? await operation.image
            bench.trace.note("requests: \(bench.origin.requestCount())")
            return bench.trace.text
        },
        Flow(
            name: "cancel during the request",
            source: "[0] SDWebImageManager: cancelling is no failure of the URL, which may be loaded again"
        ) { mode in
            let bench = try Bench(mode)
            bench.origin.route("/a.png", OriginResponse(fault: .stallBeforeHeader))
            bench.trace.note("load /a.png, cancelled when its request has arrived")
            let operation = bench.manager.startLoad(
                with: bench.origin.url("/a.png"), completed: bench.trace.completed("/a.png"))
            await bench.origin.waitForRequests(1)
            operation.cancel()
            _ = try? await operation.image
            bench.trace.note("failed URLs: \(bench.manager.failedURLs.count)")
            return bench.trace.text
        },
        Flow(
            name: "cancel during the transform",
            source:
                "[0] SDWebImageManager, the guards of the completions: \"if (strongOperation && !strongOperation.isCancelled)\" stands before each of them, that of a transformed image included; the image is stored"
        ) { mode in
            let bench = try Bench(mode)
            bench.origin.route("/a.png", OriginResponse(body: GeneratedImage.png(seed: 9, width: 9, height: 9)))
            let url = bench.origin.url("/a.png")
            let canceller = CancellingDelegate(.transform)
            bench.manager.delegate = canceller
            bench.trace.note("load /a.png, cancelled by its transformation")
            let operation = bench.manager.startLoad(with: url, completed: bench.trace.completed("/a.png"))
            canceller.cancel(operation)
            _ = try? await operation.image
            bench.trace.note("in the cache: \(await bench.manager.diskImageExists(for: url))")
            return bench.trace.text
        },
        Flow(
            name: "the same URL twice",
            source:
                "[2] SDWebImageDownloader, URLCallbacks: callers of one URL share its download, and each gets its completion"
        ) { mode in
            let bench = try Bench(mode)
            let body = GeneratedImage.png(seed: 9, width: 9, height: 9)
            bench.origin.route("/a.png", OriginResponse(body: body, fault: .stallBeforeHeader))
            let url = bench.origin.url("/a.png")
            let trace = bench.trace
            trace.note("load /a.png, and again while it is requested")
            let first = bench.manager.startLoad(with: url, progress: trace.progress)
            await bench.origin.waitForRequests(1)
            let second = bench.manager.startLoad(with: url) { trace.note("  progress \($0), \($1) of the second") }
            // Its question is the fourth line.
            await trace.wait(for: 4)
            bench.origin.release("/a.png")
            for operation in [first, second] {
                trace.note("  completed /a.png: \(Trace.text(.success(try await operation.image)))")
            }
            bench.trace.note("requests: \(bench.origin.requestCount())")
            return bench.trace.text
        },
        Flow(
            name: "memory only", source: "[0] SDWebImageCacheMemoryOnly: the image is not written to disk"
        ) { mode in
            let bench = try Bench(mode)
            bench.origin.route("/a.png", OriginResponse(body: GeneratedImage.png(seed: 9, width: 9, height: 9)))
            for _ in 0..<2 { await bench.load("/a.png", .cacheMemoryOnly) }
            let url = bench.origin.url("/a.png")
            bench.trace.note("on disk: \(await bench.manager.diskImageExists(for: url))")
            return bench.trace.text
        },
        Flow(
            name: "cache only", source: "[3] SDWebImageFromCacheOnly: what is not in the cache ends without a request"
        ) { mode in
            let bench = try Bench(mode)
            _ = bench.fixture.image("/a.png")
            await bench.load("/a.png", .fromCacheOnly)
            bench.trace.note("requests: \(bench.origin.requestCount())")
            return bench.trace.text
        },
        Flow(
            name: "transform",
            source:
                "[0] SDWebImageManagerDelegate, transformDownloadedImage: called after a download, not for a hit, and what it returns is stored"
        ) { mode in
            let bench = try Bench(mode, transforms: true)
            bench.origin.route("/a.png", OriginResponse(body: GeneratedImage.png(seed: 9, width: 9, height: 9)))
            for _ in 0..<2 { await bench.load("/a.png") }
            return bench.trace.text
        },
        Flow(
            name: "transform of an animation",
            source:
                "[0] SDWebImageTransformAnimatedImage: an animation is transformed only with this option, since it would be torn apart"
        ) { mode in
            let bench = try Bench(mode, transforms: true)
            for path in ["/a.gif", "/b.gif"] {
                bench.origin.route(
                    path, OriginResponse(body: GeneratedImage.gif(seed: 1, width: 9, height: 9, frames: 2)))
            }
            await bench.load("/a.gif")
            await bench.load("/b.gif", .transformAnimatedImage)
            return bench.trace.text
        },
        Flow(
            name: "prefetch",
            source:
                "[0] SDWebImagePrefetcher: for each URL the progress block, then the delegate; at the end the delegate with total less skipped, then the completion"
        ) { mode in
            let bench = try Bench(mode)
            _ = bench.fixture.image("/a.png", size: 5)
            _ = bench.fixture.image("/c.png", size: 6)
            bench.manager.delegate = nil
            await bench.prefetch(["/a.png", "/b.png", "/c.png", "/b.png", "/a.png"])
            return bench.trace.text
        },
        Flow(
            name: "prefetch of nothing",
            source:
                "[0] SDWebImagePrefetcher: an empty list completes with (0, 0) at once, and its delegate is not called"
        ) { mode in
            let bench = try Bench(mode)
            await bench.prefetch([])
            return bench.trace.text
        },
        Flow(
            name: "prefetch of failed URLs",
            source:
                "[0] SDWebImagePrefetcher: a URL on the list of failed URLs is finished and skipped without a request"
        ) { mode in
            let bench = try Bench(mode)
            bench.manager.delegate = nil
            for path in ["/a.png", "/b.png"] { bench.manager.failedURLs.insert(bench.origin.url(path)) }
            await bench.prefetch(["/a.png", "/b.png"])
            bench.trace.note("requests: \(bench.origin.requestCount())")
            return bench.trace.text
        },
        Flow(
            name: "cancelled prefetch",
            source:
                "[0] SDWebImagePrefetcher, cancelPrefetching: no call follows, neither of the delegate nor of the completion"
        ) { mode in
            let bench = try Bench(mode)
            bench.manager.delegate = nil
            _ = bench.fixture.image("/a.png")
            bench.origin.route("/b.png", OriginResponse(fault: .stallBeforeHeader))
            bench.trace.note("prefetch /a.png /b.png /c.png, cancelled while /b.png is requested")
            let token = bench.prefetcher.prefetch(
                ["/a.png", "/b.png", "/c.png"].map { bench.origin.url($0) }, progress: bench.trace.listProgress,
                completed: bench.trace.listCompleted)
            await bench.origin.waitForRequests(2)
            bench.prefetcher.cancelPrefetching()
            let summary = await token.wait()
            bench.trace.note("cancelled: \(summary.isCancelled), running: \(bench.prefetcher.runningTokenCount)")
            return bench.trace.text
        },
        Flow(
            name: "prefetch after a prefetch",
            source:
                "[0] SDWebImagePrefetcher, prefetchURLs: it cancels the previous prefetch first, also for an empty list"
        ) { mode in
            let bench = try Bench(mode)
            bench.manager.delegate = nil
            bench.origin.route("/slow.png", OriginResponse(fault: .stallBeforeHeader))
            bench.trace.note("prefetch /slow.png, and nothing while it is requested")
            let first = bench.prefetcher.prefetch(
                [bench.origin.url("/slow.png")], progress: bench.trace.listProgress,
                completed: bench.trace.listCompleted)
            await bench.origin.waitForRequests(1)
            await bench.prefetcher.prefetch([], completed: bench.trace.listCompleted).wait()
            bench.trace.note("first cancelled: \(first.isCancelled)")
            first.cancel()
            return bench.trace.text
        },
    ]

    @Test(arguments: flows)
    func `a flow makes exactly the calls of its trace`(flow: Flow) async throws {
        var traces: [(modes: [Mode], lines: [String])] = []
        for mode in Mode.allCases {
            let lines = try await flow.run(mode)
            if let index = traces.firstIndex(where: { $0.lines == lines }) {
                traces[index].modes.append(mode)
            } else {
                traces.append(([mode], lines))
            }
        }
        var text = "# \(flow.name)\n# \(flow.source)\n"
        for trace in traces {
            text += "\n== \(trace.modes.map(\.rawValue).joined(separator: ", "))\n"
            text += trace.lines.map { $0 + "\n" }.joined()
        }
        try Golden.expect(text, is: "traces/\(flow.name.replacing(" ", with: "-"))")
    }
}
