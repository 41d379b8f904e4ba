import FoundationEssentials
import Origin
import TestSupport
import Testing

@testable import WebImage

/// Loads with settings of their own, as a program makes them.
@Suite("Requests of a program", .timeLimit(.minutes(5)))
struct ImageRequestTests {
    private let fixture: ManagerFixture

    init() throws {
        fixture = try ManagerFixture()
    }

    @Test("A request has its own headers, digest, mirrors, key and rules")
    func request() async throws {
        let (url, bytes) = fixture.image("/a.png", size: 20)
        let manager = try fixture.manager()
        var request = ImageRequest(url)
        request.headers = [HTTPHeader("X-Own", "1")]
        request.key = "own"
        request.digest = SHA256.hash(bytes)
        let image = try await manager.loadImage(request)
        #expect(image.key == "own" && image.url == url)
        #expect(fixture.origin.requests.last?.header("X-Own") == "1")
        #expect(await manager.cache.diskImageExists(forKey: "own"))

        request.key = nil
        request.digest = SHA256.hash([1])
        #expect(await failure(manager, request)?.code == .digestMismatch)

        var mirrored = ImageRequest(fixture.origin.url("/gone"))
        mirrored.mirrors = [url]
        #expect(try await manager.loadImage(mirrored).details == ["from the mirror \(url)"])

        var ruled = ImageRequest(fixture.image("/small.png", size: 9).url)
        ruled.rules.minSize = PixelSize(width: 10, height: 0)
        #expect(await failure(manager, ruled)?.code == .imageRefused)
        #expect(await failure(manager, ImageRequest(""))?.code == .invalidURL)
        var broken = ImageRequest(fixture.image("/b.png").url)
        broken.headers = [HTTPHeader("X Y", "1")]
        #expect(await failure(manager, broken)?.code == .invalidConfiguration)
    }

    private func failure(_ manager: ImageManager, _ request: ImageRequest) async -> WebImageError? {
        do throws(WebImageError) {
            _ = try await manager.loadImage(request)
            return nil
        } catch {
            return error
        }
    }

    @Test("Foundation's URL and a literal stand for the text")
    func urls() async throws {
        let (text, _) = fixture.image("/a.png")
        let url = try #require(URL(string: text))
        let manager = try fixture.manager()
        #expect(try await manager.loadImage(with: url).url == text)
        #expect(try await manager.startLoad(ImageRequest(url)).image.outcome == .hit)
        #expect(await ImagePrefetcher(manager: manager).prefetch([url]).wait().loaded == [text])
        let literal: ImageRequest = "http://h/a"
        #expect(literal.url == "http://h/a")
    }
}
