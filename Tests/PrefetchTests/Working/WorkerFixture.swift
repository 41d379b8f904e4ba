import Origin
import Redis
import TestSupport
import WebImage

@testable import Prefetch

/// A Redis, an origin and a cache folder, with workers in this process.
struct WorkerFixture {
    let redis: RedisServer
    let origin: OriginServer
    let folder = TemporaryDirectory()

    init(appendOnly: Bool = false) async throws {
        try self.init(redis: await RedisServer(appendOnly: appendOnly))
    }

    init(redis: RedisServer) throws {
        self.redis = redis
        origin = try OriginServer()
    }

    /// * `url`: another address of the Redis.
    func queue(_ name: String = "default", at url: String? = nil) throws -> PrefetchQueue {
        PrefetchQueue(try RedisConfiguration(url: url ?? redis.url), client: "test", name: name)
    }

    /// A batch of these URLs, fed and sealed.
    func submit(
        _ urls: [String], to queue: PrefetchQueue, options: BatchOptions = BatchOptions(), jobSize: Int? = nil
    ) async throws -> String {
        let name = "list-\(UInt32.random(in: 0...UInt32.max)).txt"
        folder.write(Array((urls.joined(separator: "\n") + "\n").utf8), to: name)
        let list = try URLList(path: folder.path(name))
        let id = try await queue.batches.open(
            id: "\(list.stem)-\(list.hash.prefix(8))", nonce: name, exactly: false,
            fields: [
                ("total", String(list.total)), ("list", list.path), ("hash", list.hash), ("length", String(list.bytes)),
                ("options", options.encoded),
                ("keep", "600"), ("details", "1000"),
            ])
        let end = try await ListFeeder(queue: queue, list: list, batch: id!, window: "all", jobSize: jobSize).feed()
        #if DEBUG
            assert(end == .sealed)
        #endif
        return id!
    }

    func worker(
        queue: String = "default", cache: String = "cache", at url: String? = nil, freesSilent: Bool = true,
        timeout: Duration = .seconds(5), waitLimit: Duration = .seconds(15),
        configure: (inout PrefetchWorker.Configuration) -> Void = { _ in },
        downloads change: (inout ImageDownloader.Configuration) -> Void = { _ in }
    ) throws -> PrefetchWorker {
        var configuration = PrefetchWorker.Configuration()
        configuration.burst = true
        configuration.name = "w\(UInt32.random(in: 0...UInt32.max))"
        configure(&configuration)
        var downloads = ImageDownloader.Configuration()
        downloads.maxConcurrentDownloads = configuration.maxConcurrentDownloads.initial
        downloads.addressPolicy = AddressPolicy(allow: [CIDR("127.0.0.0/8")!])
        downloads.retryBaseDelay = 0.001
        if !freesSilent { downloads.stalledAfter = 50 }
        change(&downloads)
        var images = ImageCache.Configuration()
        images.transferTimeout = waitLimit
        let manager = try ImageManager(
            cache: ImageCache(directory: folder.path(cache), configuration: images), downloads: downloads)
        var location = try RedisConfiguration(url: url ?? redis.url)
        location.commandTimeout = timeout
        return PrefetchWorker(configuration: configuration, redis: location, queue: queue, manager: manager)
    }
}
