import Origin
import Testing

@testable import WebImage

/// Who a request speaks for, and where that stays behind.
@Suite("Credentials", .timeLimit(.minutes(5)))
struct ImageDownloaderCredentialTests {
    private let origin: OriginServer
    private let other: OriginServer

    init() throws {
        (origin, other) = (try OriginServer(), try OriginServer())
    }

    private func authorizations(_ server: OriginServer) -> [String?] {
        server.requests.map { $0.header("Authorization") }
    }

    private func downloader(_ credentials: Credential...) throws -> ImageDownloader {
        let (port, otherPort) = (origin.port, other.port)
        return try makeDownloader {
            $0.credentials = credentials
            $0.resolve = ["a.test:\(port):127.0.0.1", "b.test:\(otherPort):127.0.0.1"]
        }
    }

    @Test("Name and password, or a token, go with the first request")
    func first() async throws {
        origin.route("/", OriginResponse(body: [1]))
        _ = try await downloader(Credential(user: "u", password: "p")).download(origin.url("/"))
        _ = try await downloader(Credential(bearer: "token")).download(origin.url("/"))
        #expect(authorizations(origin) == ["Basic dTpw", "Bearer token"])
    }

    @Test("A digest is told once the server has asked for it, without the password")
    func digest() async throws {
        origin.route("/") { request in
            request.header("Authorization") == nil
                ? OriginResponse(
                    status: 401, headers: [("WWW-Authenticate", #"Digest realm="r", nonce="abc", qop="auth""#)],
                    body: [2, 3])
                : OriginResponse(body: [1])
        }
        let image = try await downloader(Credential(user: "u", password: "secret", scheme: .digest))
            .download(origin.url("/"))
        #expect(try image.body.bytes == [1] && image.tries == 1)
        let sent = authorizations(origin)
        #expect(sent.count == 2 && sent[0] == nil)
        let told = try #require(sent[1])
        #expect(told.hasPrefix("Digest ") && told.contains(#"username="u""#) && told.contains("response="))
        #expect(!told.contains("secret"))
    }

    @Test("Who is told 401 in spite of it has failed, without another try")
    func refused() async throws {
        origin.setFallback { _ in
            OriginResponse(status: 401, headers: [("WWW-Authenticate", #"Basic realm="r""#)])
        }
        let error = await (try downloader(Credential(user: "u", password: "p"))).failure(origin.url("/"))
        #expect(error?.httpStatus == 401 && error?.tries == 1 && origin.requestCount() == 1)
    }

    @Test("Each host gets its own; one without a host is for the URL's site; neither follows a redirect to another")
    func hosts() async throws {
        let (here, there) = ("http://a.test:\(origin.port)", "http://b.test:\(other.port)")
        origin.route("/", OriginResponse.redirect(to: "\(there)/"))
        other.setFallback { _ in OriginResponse(body: [1]) }
        let own = Credential(user: "a", password: "1", hosts: ["a.test"])
        _ = try await downloader(own).download("\(here)/")
        _ = try await downloader(Credential(user: "x", password: "1")).download("\(here)/")
        #expect(authorizations(other) == [nil, nil])
        #expect(authorizations(origin) == ["Basic YTox", "Basic eDox"])
        // The other host's own does go there where it names the port, which is not the usual one.
        _ = try await downloader(own, Credential(user: "b", password: "2", hosts: ["b.test"])).download("\(here)/")
        #expect(authorizations(other).last == .some(nil))
        let named = Credential(user: "b", password: "2", hosts: ["b.test:\(other.port)"])
        _ = try await downloader(own, named).download("\(here)/")
        #expect(authorizations(other).last == "Basic Yjoy")
        // A handle that has spoken for somebody speaks for nobody the next time.
        let downloader = try downloader(own)
        _ = try await downloader.download("\(here)/")
        _ = try await downloader.download("\(there)/plain")
        #expect(authorizations(other).last == .some(nil))
    }

    @Test("A token keeps to scheme, host and port: a redirect to another port of its own host does not have it")
    func otherPort() async throws {
        let (first, second) = (origin.port, other.port)
        origin.route("/", OriginResponse.redirect(to: "http://a.test:\(second)/"))
        other.setFallback { _ in OriginResponse(body: [1]) }
        for hosts in [[], ["a.test"]] as [Set<String>] {
            let downloader = try makeDownloader {
                $0.credentials = [Credential(bearer: "token", hosts: hosts)]
                $0.resolve = [first, second].map { "a.test:\($0):127.0.0.1" }
            }
            _ = try await downloader.download("http://a.test:\(first)/")
            #expect(authorizations(origin).last == "Bearer token" && authorizations(other).last == .some(nil))
            // A URL of that port is one that the user has given.
            _ = try await downloader.download("http://a.test:\(second)/own")
            #expect(authorizations(other).last == "Bearer token")
        }
        let credential = Credential(bearer: "t", hosts: ["a.test", "b.test:8080"])
        func isFor(_ url: String, isAtOrigin: Bool = false) throws -> Bool {
            credential.isFor(try RequestURL(url), isAtOrigin: isAtOrigin)
        }
        #expect(try isFor("http://a.test/") && isFor("https://a.test/") && isFor("https://b.test:8080/"))
        #expect(try isFor("http://a.test:8080/", isAtOrigin: true) && !isFor("http://b.test/", isAtOrigin: true))
        #expect(try !isFor("http://a.test:8080/") && !isFor("http://a.test:443/") && !isFor("https://a.test:80/"))
    }

    @Test("Those in the URL come before those of the configuration")
    func inTheURL() async throws {
        origin.route("/", OriginResponse(body: [1]))
        _ = try await downloader(Credential(user: "u", password: "p"))
            .download("http://me:you@127.0.0.1:\(origin.port)/")
        #expect(authorizations(origin) == ["Basic bWU6eW91"])
    }

    @Test("A netrc file is read as curl reads it, but for a default")
    func netrc() {
        let text = """
            # a comment
            machine A.test login me password "a \\" b"
            machine b.test
              login you
              password pw account x
            macdef init
            machine no.test login no password no

            default login anybody password p
            machine a.test login second password second
            """
        #expect(
            Netrc.credentials(in: text) == [
                Credential(user: "me", password: "a \" b", hosts: ["a.test"]),
                Credential(user: "you", password: "pw", hosts: ["b.test"]),
            ])
        #expect(Netrc.credentials(in: "machine x") == [Credential(user: "", password: "", hosts: ["x"])])
        #expect(Netrc.credentials(in: "login a password b").isEmpty)
    }

    @Test("What could become another header is refused")
    func invalid() {
        for credential in [
            Credential(bearer: "a\r\nX: y"), Credential(bearer: ""), Credential(user: "a\n", password: ""),
        ] {
            #expect(throws: WebImageError.self) {
                var configuration = ImageDownloader.Configuration()
                configuration.credentials = [credential]
                try configuration.validate()
            }
        }
    }
}
