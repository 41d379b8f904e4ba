import Glibc
import Origin
import TestSupport
import Testing

@testable import WebImage

/// `refreshCached`, and what the server says of an image's freshness.
@Suite("Refreshing what is cached", .timeLimit(.minutes(5)))
struct RefreshTests {
    private let fixture: ManagerFixture

    init() throws {
        fixture = try ManagerFixture()
    }

    /// An image at a path with these headers; the origin answers 304 to its ETag by itself.
    private func route(_ path: String, seed: Int, _ headers: [(String, String)]) -> (url: String, bytes: [UInt8]) {
        let bytes = GeneratedImage.png(seed: UInt64(seed), width: 9, height: 9)
        fixture.origin.route(path, OriginResponse(headers: headers, body: bytes))
        return (fixture.origin.url(path), bytes)
    }

    private func age(_ path: String) -> Int {
        var status = stat()
        return stat(path, &status) == 0 ? time(nil) - status.st_mtim.tv_sec : -1
    }

    @Test("304 ends notModified, makes the file young again and transfers nothing")
    func notModified() async throws {
        let (url, bytes) = route(
            "/a.png", seed: 1, [("ETag", "\"1\""), ("Last-Modified", "Mon, 05 Jan 2026 10:00:00 GMT")])
        let manager = try fixture.manager()
        let first = try await manager.loadImage(with: url, options: .refreshCached)
        #expect(first.outcome == .downloaded && first.cacheType == .none)
        let path = try #require(first.path)
        let old = [timespec(tv_sec: 1_700_000_000, tv_nsec: 0), timespec(tv_sec: 1_700_000_000, tv_nsec: 0)]
        #expect(utimensat(AT_FDCWD, path, old, 0) == 0)
        let second = try await manager.loadImage(with: url, options: .refreshCached)
        #expect(second.outcome == .notModified && second.httpStatus == 304 && second.tries == 1)
        #expect(second.path == path && second.byteCount == bytes.count && second.cacheType == .memory)
        #expect((0...60).contains(age(path)))
        let request = try #require(fixture.origin.requests.last)
        #expect(request.header("If-None-Match") == "\"1\"")
        #expect(request.header("If-Modified-Since") == "Mon, 05 Jan 2026 10:00:00 GMT")
        #expect(readFile(path) == bytes)
        // Without the option nobody is asked.
        #expect(try await manager.loadImage(with: url).outcome == .hit)
        #expect(fixture.origin.requestCount() == 2)
    }

    private enum Rule: String, CaseIterable { case delegate, failedURLs, robots, addresses }

    @Test("A refresh that a rule refuses ends with the cached image, as a hit", arguments: Rule.allCases)
    private func refused(rule: Rule) async throws {
        let (url, bytes) = route("/a.png", seed: 1, [("ETag", "\"1\"")])
        let cache = try fixture.cache()
        let path = try await fixture.manager(cache: cache).loadImage(with: url).path
        let requests = fixture.origin.requestCount("/a.png")
        let manager = try fixture.manager(
            cache: cache,
            downloads: {
                if rule == .robots { $0.asksRobots = true }
                if rule == .addresses { $0.addressPolicy = AddressPolicy() }
            })
        fixture.origin.route("/robots.txt", OriginResponse(body: Array("User-agent: *\nDisallow: /\n".utf8)))
        let delegate = RecordingDelegate(downloads: rule != .delegate)
        manager.delegate = delegate
        if rule == .failedURLs { manager.failedURLs.insert(url) }
        let image = try await manager.loadImage(with: url, options: .refreshCached)
        #expect(image.outcome == .hit && image.path == path && image.byteCount == bytes.count)
        #expect(image.details.count == 1 && image.details[0].hasPrefix("not refreshed: "), "\(image.details)")
        #expect(fixture.origin.requestCount("/a.png") == requests)
        #expect(!delegate.asked.contains { $0.hasPrefix("block") })
    }

    @Test("A date alone is asked for too")
    func dateAlone() async throws {
        let date = "Mon, 05 Jan 2026 10:00:00 GMT"
        let bytes = GeneratedImage.png(seed: 1, width: 9, height: 9)
        fixture.origin.route("/a.png") { request in
            request.header("If-Modified-Since") == date
                ? OriginResponse(status: 304) : OriginResponse(headers: [("Last-Modified", date)], body: bytes)
        }
        let url = fixture.origin.url("/a.png")
        let manager = try fixture.manager()
        #expect(try await manager.loadImage(with: url).outcome == .downloaded)
        #expect(try await manager.loadImage(with: url, options: .refreshCached).outcome == .notModified)
        // A 304 that repeats nothing leaves what is known.
        #expect(try await manager.loadImage(with: url, options: .refreshCached).outcome == .notModified)
    }

    @Test("Changed bytes take the place of the old ones; who has those open keeps them")
    func changed() async throws {
        let (url, old) = route("/a.png", seed: 1, [("ETag", "\"1\"")])
        let manager = try fixture.manager()
        let path = try #require(try await manager.loadImage(with: url, options: .refreshCached).path)
        let reader = open(path, O_RDONLY)
        defer { close(reader) }
        let (_, new) = route("/a.png", seed: 2, [("ETag", "\"2\"")])
        let image = try await manager.loadImage(with: url, options: .refreshCached)
        #expect(image.outcome == .downloaded && image.httpStatus == 200)
        #expect(readFile(path) == new)
        var bytes = [UInt8](repeating: 0, count: old.count)
        #expect(read(reader, &bytes, bytes.count) == old.count && bytes == old)
        // Memory has the new ones as well, and the new validator is the one that is asked for.
        #expect(manager.cache.imageFromMemoryCache(forKey: url)?.bytes == new)
        #expect(try await manager.loadImage(with: url, options: .refreshCached).outcome == .notModified)
        #expect(fixture.origin.requests.last?.header("If-None-Match") == "\"2\"")
    }

    @Test("What came with validators is asked for by them the first time, what came without is asked for whole")
    func firstRefresh() async throws {
        let (url, _) = route("/a.png", seed: 1, [("ETag", "\"1\"")])
        let (bare, bytes) = route("/b.png", seed: 2, [])
        let manager = try fixture.manager()
        for url in [url, bare] { _ = try await manager.loadImage(with: url) }
        #expect(try await manager.loadImage(with: url, options: .refreshCached).outcome == .notModified)
        #expect(fixture.origin.requests.last?.header("If-None-Match") == "\"1\"")
        let second = try await manager.loadImage(with: bare, options: .refreshCached)
        #expect(try second.outcome == .downloaded && readFile(try #require(second.path)) == bytes)
        #expect(fixture.origin.requests.last?.header("If-None-Match") == nil)
    }

    @Test("Where asking fails the load has failed, and the image stays", arguments: [404, 500])
    func failing(status: Int) async throws {
        let (url, bytes) = route("/a.png", seed: 1, [("ETag", "\"1\"")])
        let manager = try fixture.manager()
        let path = try #require(try await manager.loadImage(with: url, options: .refreshCached).path)
        fixture.origin.route("/a.png", OriginResponse(status: status))
        #expect(await manager.failure(url, .refreshCached)?.httpStatus == status)
        #expect(readFile(path) == bytes)
        #expect(try await manager.loadImage(with: url).outcome == .hit)
    }

    @Test("A 304 for an image that was removed meanwhile brings the whole of it")
    func removedMeanwhile() async throws {
        let bytes = GeneratedImage.png(seed: 1, width: 9, height: 9)
        let manager = try fixture.manager()
        let url = fixture.origin.url("/a.png")
        let path = manager.cache.disk.images.path(of: CacheKey(url))
        fixture.origin.route("/a.png") { request in
            guard request.header("If-None-Match") == nil else {
                unlink(path)
                return OriginResponse(status: 304, headers: [("ETag", "\"1\"")])
            }
            return OriginResponse(headers: [("ETag", "\"1\"")], body: bytes)
        }
        _ = try await manager.loadImage(with: url, options: .refreshCached)
        #expect(try await manager.loadImage(with: url, options: .refreshCached).outcome == .downloaded)
        #expect(readFile(path) == bytes && fixture.origin.requestCount() == 3)
    }

    @Test("What the server calls fresh is a hit without a request, for whoever honours that")
    func fresh() async throws {
        let (url, _) = route("/a.png", seed: 1, [("ETag", "\"1\""), ("Cache-Control", "public, max-age=3600")])
        let (stale, _) = route("/b.png", seed: 2, [("ETag", "\"2\""), ("Cache-Control", "max-age=0")])
        let (immutable, _) = route("/c.png", seed: 3, [("Cache-Control", "immutable")])
        let manager = try fixture.manager()
        for url in [url, stale, immutable] {
            #expect(try await manager.loadImage(with: url, options: .honorCacheControl).outcome == .downloaded)
        }
        #expect(try await manager.loadImage(with: url, options: .honorCacheControl).outcome == .hit)
        #expect(try await manager.loadImage(with: immutable, options: .honorCacheControl).outcome == .hit)
        #expect(fixture.origin.requestCount() == 3)
        #expect(try await manager.loadImage(with: stale, options: .honorCacheControl).outcome == .notModified)
        // Who does not honour it asks.
        #expect(try await manager.loadImage(with: url, options: .refreshCached).outcome == .notModified)
        #expect(fixture.origin.requestCount() == 5)
    }

    @Test("A 304 says anew how long an image is fresh")
    func freshAgain() async throws {
        let bytes = GeneratedImage.png(seed: 1, width: 9, height: 9)
        fixture.origin.route("/a.png") { request in
            let isKnown = request.header("If-None-Match") != nil
            return OriginResponse(
                status: isKnown ? 304 : 200,
                headers: [("ETag", "\"1\""), ("Cache-Control", isKnown ? "max-age=3600" : "no-cache")],
                body: isKnown ? [] : bytes)
        }
        let url = fixture.origin.url("/a.png")
        let manager = try fixture.manager()
        for outcome in [PrefetchOutcome.downloaded, .notModified, .hit] {
            #expect(try await manager.loadImage(with: url, options: .honorCacheControl).outcome == outcome)
        }
        #expect(fixture.origin.requestCount() == 2)
    }

    @Test("Without extended attributes the validators stand beside the record")
    func sidecar() async throws {
        let (url, _) = route("/a.png", seed: 1, [("ETag", "\"1\""), ("Cache-Control", "max-age=3600")])
        var configuration = ImageCache.Configuration()
        configuration.disk.usesExtendedAttributes = .never
        let manager = try fixture.manager(cache: fixture.cache(configuration))
        for outcome in [PrefetchOutcome.downloaded, .notModified, .notModified] {
            #expect(try await manager.loadImage(with: url, options: .refreshCached).outcome == outcome)
        }
        // The 304 said nothing of it: as fresh as before, from then on.
        #expect(try await manager.loadImage(with: url, options: .honorCacheControl).outcome == .hit)
    }

    @Test("A hit whose bytes are not what was stored is fetched again, for whoever looks")
    func damagedHit() async throws {
        let (url, bytes) = route("/a.png", seed: 1, [])
        let manager = try fixture.manager()
        let path = try #require(try await manager.loadImage(with: url).path)
        var damaged = bytes
        damaged[damaged.count / 2] ^= 0xFF
        #expect(chmod(path, 0o644) == 0)
        let file = open(path, O_WRONLY)
        #expect(write(file, damaged, damaged.count) == damaged.count)
        close(file)
        #expect(try await manager.loadImage(with: url).outcome == .hit)
        let again = try await manager.loadImage(with: url, options: .queryDataWhenInMemory)
        #expect(again.outcome == .downloaded && readFile(path) == bytes)
        let hit = try await manager.loadImage(with: url, options: .queryDataWhenInMemory)
        #expect(hit.outcome == .hit && hit.cacheType == .memory)
        #expect(fixture.origin.requestCount() == 2)
    }

    @Test(
        "Freshness is what RFC 9111 makes of the headers",
        arguments: [
            (["max-age=60"], nil, nil, nil, 60), (["max-age=60"], nil, nil, "20", 40),
            (["max-age=60"], nil, nil, "90", 0),
            (["public", "MAX-AGE=\"60\""], nil, nil, nil, 60), (["max-age=x"], nil, nil, nil, 0),
            (["max-age=60, no-cache"], nil, nil, nil, 0), (["no-store"], nil, nil, nil, 0),
            (["no-cache=\"Set-Cookie\", max-age=5"], nil, nil, nil, 5),
            (["max-age=99999999999999999999"], nil, nil, nil, 10 * Freshness.year),
            ([], "Mon, 05 Jan 2026 10:01:00 GMT", "Mon, 05 Jan 2026 10:00:00 GMT", nil, 60),
            ([], "Mon, 05 Jan 2026 10:01:00 GMT", nil, nil, 0), ([], "0", nil, nil, 0),
            (["immutable"], nil, nil, nil, Freshness.year), (["immutable, max-age=7"], nil, nil, nil, 7),
            (["s-maxage=60"], nil, nil, nil, nil), ([], nil, nil, nil, nil),
        ] as [([String], String?, String?, String?, Int?)])
    func freshness(control: [String], expires: String?, date: String?, age: String?, seconds: Int?) {
        let now = 1_780_000_000
        #expect(Freshness.seconds(control: control, expires: expires, date: date, age: age, now: now) == seconds)
    }
}
