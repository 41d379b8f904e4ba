import Origin
import Testing

@testable import WebImage

@Suite("What a server that refuses wants", .timeLimit(.minutes(5)))
struct AccessDemandTests {
    @Test(
        "401 and 403 are told with the server's challenges, or that it wants a browser; other statuses are not",
        arguments: [
            (401, [("WWW-Authenticate", #"Basic realm="photos""#)], #"HTTP 401 (Basic realm="photos")"#),
            (
                403, [("www-authenticate", "Bearer"), ("WWW-Authenticate", "Digest a=b")],
                "HTTP 403 (Bearer, Digest a=b)"
            ),
            (403, [("CF-Mitigated", "challenge")], "HTTP 403 (cloudflare challenge: cf-mitigated)"),
            (403, [], "HTTP 403"), (404, [("WWW-Authenticate", "Basic")], "HTTP 404"),
            (
                401, [("WWW-Authenticate", "Basic realm=\"\u{1B}[2J\té\\\"")],
                #"HTTP 401 (Basic realm="\x1b[2J\x09\xc3\xa9\x5c")"#
            ),
        ] as [(Int, [(String, String)], String)])
    func demands(status: Int, headers: [(String, String)], message: String) async throws {
        let server = try OriginServer()
        server.setFallback { _ in OriginResponse(status: status, headers: headers, body: [1]) }
        let error = await (try makeDownloader()).failure(server.url("/"))
        #expect(error?.message == message && error?.outcome == .httpError && error?.httpStatus == status)
        // Also where the statuses that are accepted were given.
        let choosy = try makeDownloader { $0.acceptableStatusCodes = [200...200] }
        #expect(await choosy.failure(server.url("/"))?.message == message)
    }

    @Test(
        "An empty 202 is a bot wall's challenge, and no image that is bad for ever",
        arguments: [
            ([], "HTTP 202 (an empty body, as bot walls send it)"),
            ([("x-amzn-waf-action", "challenge")], "HTTP 202 (an empty body, as bot walls send it: aws challenge)"),
        ] as [([(String, String)], String)])
    func challenge(headers: [(String, String)], message: String) async throws {
        let server = try OriginServer()
        server.route("/", OriginResponse(status: 202, headers: headers))
        server.route("/image", OriginResponse(status: 202, headers: headers, body: [1]))
        let downloader = try makeDownloader()
        let error = try #require(await downloader.failure(server.url("/")))
        #expect(error.message == message && error.outcome == .httpError && error.httpStatus == 202)
        #expect(!FailedURLPolicy.smart.lists(error))
        #expect(try await downloader.download(server.url("/image")).body.bytes == [1])
    }

    @Test("A challenge is cut", arguments: [120, 121, 5000])
    func cut(length: Int) {
        let demand = AccessDemand(status: 401) {
            $0 == "WWW-Authenticate" ? [String(repeating: "a", count: length)] : []
        }
        #expect(demand?.text == String(repeating: "a", count: 120) + (length > 120 ? "…" : ""))
    }
}
