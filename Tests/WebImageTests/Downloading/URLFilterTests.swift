import Origin
import TestSupport
import Testing

@testable import WebImage

/// Filters of URLs: hosts by name, and patterns.
@Suite("URL filters", .timeLimit(.minutes(5)))
struct URLFilterTests {
    @Test("A host filter allows and denies names and domains")
    func hosts() {
        let filter = HostFilter(allowed: ["a.example", "*.b.example"], denied: ["x.b.example"])
        func isAllowed(_ host: String) -> Bool { filter.refusal(of: "http://\(host)/a.png") == nil }
        #expect(["a.example", "A.example.", "c.b.example"].allSatisfy(isAllowed))
        #expect(!["b.example", "x.b.example", "a.example.org", "xa.example"].contains(where: isAllowed))
        #expect(filter.refusal(of: "http://x.b.example/")?.contains("denied") == true)
        #expect(HostFilter(denied: ["*.b.example"]).refusal(of: "http://other.example/") == nil)
        #expect(HostPatterns(["A.Example"]).contains("a.example"))
    }

    @Test("A pattern has to match, and has to be one")
    func patterns() throws {
        let filter = try PatternFilter(#"/photos/.*\.jpe?g$"#)
        #expect(try filter.refusal(of: "http://h/photos/1.jpg") == nil)
        #expect(try filter.refusal(of: "http://h/icons/1.jpg")?.contains("does not match") == true)
        let error = #expect(throws: WebImageError.self) { try PatternFilter("(") }
        #expect(error?.code == .invalidConfiguration)
    }

    @Test("A filtered URL is not requested, neither at first nor by redirect; a cached one is a hit")
    func requests() async throws {
        let fixture = try ManagerFixture()
        let (cached, bytes) = fixture.image("/cached.png")
        let (kept, _) = fixture.image("/kept.png")
        fixture.origin.route("/hop", OriginResponse(status: 302, headers: [("Location", "/denied.png")]))
        let manager = try fixture.manager {
            $0.failedURLPolicy = .sd3
        } downloads: {
            $0.urlFilters = [try! PatternFilter("/(kept|hop)")]
        }
        try await manager.cache.store(bytes, forKey: cached)
        #expect(try await manager.loadImage(with: cached).outcome == .hit)
        #expect(try await manager.loadImage(with: kept).outcome == .downloaded)
        let denied = await manager.failure(fixture.origin.url("/denied.png"))
        #expect(denied?.code == .refused && denied?.outcome == .filtered && denied?.tries == 0)
        let hop = await manager.failure(fixture.origin.url("/hop"))
        #expect(hop?.code == .refused && hop?.tries == 1)
        #expect(fixture.origin.requests.map(\.path) == ["/kept.png", "/hop"])
        // Our own rule is nobody's failure.
        #expect(manager.failedURLs.count == 0)
    }
}
