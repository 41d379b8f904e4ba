import Origin
import TestSupport
import Testing

@testable import WebImage

@Suite("URLs are their bytes", .timeLimit(.minutes(5)))
struct URLBytesTests {
    private let fixture: ManagerFixture

    init() throws {
        fixture = try ManagerFixture()
    }

    private func memoryImage(_ byte: UInt8) -> MemoryImage {
        MemoryImage(bytes: [byte], info: ImageInfo(format: .png, width: 1, height: 1, level: .decode), digest: nil)
    }

    /// Routes an image of so many pixels to a path as it is sent.
    private func image(_ path: String, size: Int) throws -> (url: String, bytes: [UInt8]) {
        let url = fixture.origin.url(path)
        return (url, fixture.image(try RequestURL(url).target, size: size).bytes)
    }

    @Test("A list of two equivalent URLs loads two images", arguments: EquivalentPaths.all)
    func list(pair: EquivalentPaths) async throws {
        let images = [try image(pair.one, size: 9), try image(pair.other, size: 10)]
        let manager = try fixture.manager()
        let prefetcher = ImagePrefetcher(manager: manager)
        var outcomes: [PrefetchOutcome?] = []
        for await event in prefetcher.events(for: images.map(\.url)) {
            if case .didPrefetch(_, _, _, let outcome, _) = event { outcomes.append(outcome) }
        }
        #expect(outcomes == [.downloaded, .downloaded])
        #expect(fixture.origin.requestCount() == 2)
        for (url, bytes) in images {
            let again = try await manager.loadImage(with: url)
            let path = try #require(again.path)
            #expect(again.outcome == .hit && readFile(path) == bytes)
        }
    }

    @Test("The failure of one is not the failure of the other", arguments: EquivalentPaths.all)
    func failure(pair: EquivalentPaths) async throws {
        fixture.origin.setFallback { _ in OriginResponse(status: 404) }
        let (url, _) = try image(pair.other, size: 9)
        let manager = try fixture.manager()
        let gone = fixture.origin.url(pair.one)
        var outcomes: [PrefetchOutcome?] = []
        for await event in ImagePrefetcher(manager: manager).events(for: [gone, url, gone]) {
            if case .didPrefetch(_, _, _, let outcome, _) = event { outcomes.append(outcome) }
        }
        #expect(outcomes.count { $0 == .downloaded } == 1 && outcomes.count { $0 == .httpError } == 2)
        #expect(manager.failedURLs.contains(gone) && !manager.failedURLs.contains(url))
    }

    @Test("A memory cache has an image for each", arguments: EquivalentPaths.all)
    func memory(pair: EquivalentPaths) {
        let cache = MemoryCache()
        cache.insert(memoryImage(1), forKey: pair.one)
        #expect(cache.image(forKey: pair.other) == nil)
        cache.insert(memoryImage(2), forKey: pair.other)
        #expect(cache.count == 2)
        #expect(cache.image(forKey: pair.one) == memoryImage(1) && cache.image(forKey: pair.other) == memoryImage(2))
        cache.remove(forKey: pair.one)
        #expect(cache.contains(pair.other) && !cache.contains(pair.one))
    }

    @Test("Downloads of both at once are two transfers", arguments: EquivalentPaths.all)
    func downloads(pair: EquivalentPaths) async throws {
        let images = [try image(pair.one, size: 9), try image(pair.other, size: 10)]
        let downloader = try makeDownloader()
        async let one = downloader.download(images[0].url)
        async let other = downloader.download(images[1].url)
        let bodies = [try await one.body.bytes, try await other.body.bytes]
        #expect(bodies == images.map(\.bytes))
    }

    @Test("Keys of transfers tell them apart, in the URL, a header's value, and the reverse")
    func keys() {
        func key(_ url: String, _ value: String = "") -> DownloadOperation.Key {
            DownloadOperation.Key(
                url: url, options: [], headers: [HTTPHeader("X-Name", value)], jar: nil, profile: nil, rules: nil)
        }
        for pair in EquivalentPaths.all {
            #expect(key(pair.one) != key(pair.other) && key(pair.one) == key(pair.one))
            #expect(key("/", pair.one) != key("/", pair.other))
            #expect(HTTPHeader("a", pair.one) != HTTPHeader("a", pair.other))
        }
    }

    @Test("A header's name is compared in ASCII: the Kelvin sign is no k")
    func headerNames() {
        let headers = [HTTPHeader("X-\u{212A}ey", "kelvin"), HTTPHeader("x-key", "plain")]
        #expect(headers.value(of: "X-Key") == "plain")
        #expect(!HTTPHeader("Save-Data\u{212A}", "").isSafeAcrossSites)
    }

    @Test("A line break of two bytes is one character, and no header's value may have it")
    func lineBreak() {
        for value in ["a\r\nX-Other: 1", "\r\n", "a\r\n", "a\nb", "a\rb", "\u{301}\r\n"] {
            #expect(!HTTPHeader("X-Name", value).isValid)
        }
    }

    @Test("What separates is a byte, whatever mark follows it")
    func separators() {
        #expect(RobotsTag.refusal(of: ["noindex,\u{301}"], agent: "prefetch") == "noindex")
        #expect(Freshness.seconds(control: ["max-age=60,\u{301}"], expires: nil, date: nil, age: nil, now: 0) == 60)
        let credentials = Netrc.credentials(in: "# a comment\r\nmachine a.example login u password p\r\n")
        #expect(credentials == [Credential(user: "u", password: "p", hosts: ["a.example"])])
        let name = SDWebImageFileName.name(forKey: "http://h.x/a.png?\u{301}.b", layout: .v5)
        #expect(name?.hasSuffix(".png") == true)
    }

    @Test("The rules of robots.txt for a program with the Kelvin sign are not for the one with a k")
    func kelvinAgent() throws {
        let rules = "User-agent: \u{212A}bot\nDisallow: /"
        #expect(RobotsRules(text: rules, agent: "kbot").verdict(on: "/a.png") == .allowed)
        #expect(RobotsRules(text: "User-agent: KBOT\nDisallow: /", agent: "kbot").verdict(on: "/a.png") == .disallowed)
    }

    @Test("A host with the Kelvin sign is another host than the one with a k")
    func kelvinHost() throws {
        let kelvin = try RequestURL("http://bloc\u{212A}.example/")
        #expect(kelvin.host.utf8.elementsEqual("bloc\u{212A}.example".utf8))
        #expect(try RequestURL("HTTP://BLOCK.Example/").host == "block.example")
        let patterns: HostPatterns = ["block.example", "*.other.example"]
        #expect(patterns.contains("block.example") && !patterns.contains(kelvin.host))
    }
}
