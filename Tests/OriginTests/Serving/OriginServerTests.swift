internal import Glibc
@testable import Origin
import TestSupport
import Testing

@Suite("Origin server", .timeLimit(.minutes(5)))
struct OriginServerTests {
    @Test("A route is answered with its length and keeps the connection")
    func answers() async throws {
        let server = try OriginServer()
        server.route("/a", OriginResponse(headers: [("ETag", "\"1\"")], body: Array("hello".utf8)))
        let client = try RawClient(port: server.port)
        client.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\n\r\n")
        client.send("GET /a HTTP/1.1\r\nIf-None-Match: \"1\"\r\nConnection: close\r\n\r\n")
        let text = client.readAll()
        #expect(
            text.hasPrefix("HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 404 Not Found\r\n")
        )
        #expect(text.hasSuffix("HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\nConnection: close\r\n\r\n"))
        #expect(server.requests.map(\.path) == ["/a", "/b", "/a"])
        #expect(server.requests.map(\.number) == [1, 1, 2])
        #expect(Set(server.requests.map(\.connection)) == [1])
        #expect(server.requests[0].header("host") == "x")
    }

    @Test(
        "Each way to misbehave is on the wire as announced",
        arguments: [
            (OriginResponse(body: Array("hello".utf8), fault: .truncated(after: 2)), "Content-Length: 5\r\n\r\nhe"),
            (OriginResponse(body: Array("hello".utf8), fault: .closeBeforeHeader), ""),
            (
                OriginResponse(body: Array("hello".utf8), framing: .announced("-5"), closesConnection: true),
                "-5\r\nConnection: close\r\n\r\nhello"
            ),
            (
                OriginResponse(body: Array("hello".utf8), framing: .chunked(size: 3), closesConnection: true),
                "\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"
            ),
            (
                OriginResponse(body: Array("hello".utf8), framing: .chunked(size: 3), fault: .truncated(after: 4)),
                "\r\n\r\n3\r\nhel\r\n2\r\nl"
            ),
            (
                OriginResponse(body: Array("hello".utf8), framing: .untilClose, fault: .truncated(after: 3)),
                "Connection: close\r\n\r\nhel"
            ),
            (
                OriginResponse(
                    body: Array("hello".utf8), fault: .drip(bytes: 2, seconds: 0.001), closesConnection: true), "hello"
            ),
            (OriginResponse(fault: .raw(Array("SSH-2.0".utf8))), "SSH-2.0"),
            (
                OriginResponse(fault: .headerFlood(3), closesConnection: true),
                "X-Flood-1: water\r\nX-Flood-2: water\r\nConnection: close\r\n\r\n"
            ),
            (
                OriginResponse(fault: .informationalFlood(2), closesConnection: true),
                "rel=preload\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            ),
        ])
    func misbehaves(response: OriginResponse, ending: String) throws {
        let server = try OriginServer()
        server.route("/", response)
        let client = try RawClient(port: server.port)
        client.send("GET / HTTP/1.1\r\n\r\n")
        let text = client.readAll()
        #expect(text.hasSuffix(ending) && (!ending.isEmpty || text.isEmpty), "\(text)")
    }

    @Test("A reset is a reset")
    func resets() throws {
        let server = try OriginServer()
        server.route("/", OriginResponse(body: Array("hello".utf8), fault: .reset(after: 2)))
        let client = try RawClient(port: server.port)
        client.send("GET / HTTP/1.1\r\n\r\n")
        _ = client.readAll()
        #expect(client.lastError == ECONNRESET)
    }

    @Test("A stall lasts until it is released")
    func stalls() async throws {
        let server = try OriginServer()
        server.route("/s", OriginResponse(body: Array("hello".utf8), fault: .stall(after: 2), closesConnection: true))
        let client = try RawClient(port: server.port)
        client.send("GET /s HTTP/1.1\r\n\r\n")
        await server.waitForRequests(1, to: "/s")
        #expect(client.readUntil("he").hasSuffix("he"))
        server.release("/s")
        #expect(client.readAll() == "llo")
        // Released for ever.
        let second = try RawClient(port: server.port)
        second.send("GET /s HTTP/1.1\r\n\r\n")
        #expect(second.readAll().hasSuffix("hello"))
    }

    @Test("A sequence ends with its last answer")
    func sequences() throws {
        let server = try OriginServer()
        server.route("/", sequence: [.init(status: 503), .init(status: 404), .init()])
        let client = try RawClient(port: server.port)
        for _ in 0..<3 { client.send("GET / HTTP/1.1\r\n\r\n") }
        client.send("GET / HTTP/1.1\r\nConnection: close\r\n\r\n")
        let statuses = client.readAll().split(separator: "\r\n").filter { $0.hasPrefix("HTTP") }
        #expect(
            statuses == [
                "HTTP/1.1 503 Service Unavailable", "HTTP/1.1 404 Not Found", "HTTP/1.1 200 OK", "HTTP/1.1 200 OK",
            ])
    }

    @Test("A folder is served, and nothing outside of it")
    func folders() throws {
        var template = Array("/tmp/origin-XXXXXX\0".utf8CString)
        let path = template.withUnsafeMutableBufferPointer { String(cString: mkdtemp($0.baseAddress!)) }
        defer {
            unlink("\(path)/a b.jpg")
            unlink("\(path)/link.jpg")
            rmdir(path)
        }
        let file = try #require(fopen("\(path)/a b.jpg", "w"))
        fputs("jpeg", file)
        fclose(file)
        symlink("/etc/passwd", "\(path)/link.jpg")
        let server = try OriginServer.serve(directory: path)
        let client = try RawClient(port: server.port)
        for target in [
            "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/link.jpg", "/", "//etc/passwd", "/%00",
            "/a%20b.jpg?x=1",
        ] {
            client.send("GET \(target) HTTP/1.1\r\n\r\n")
        }
        client.send("GET /none HTTP/1.1\r\nConnection: close\r\n\r\n")
        let text = client.readAll()
        #expect(text.contains("image/jpeg") && text.contains("Content-Length: 4\r\n\r\njpeg"))
        #expect(text.components(of: "HTTP/1.1 404") == 7)
    }

    @Test("Stopping closes every socket and frees the port")
    func stops() async throws {
        let server = try OriginServer()
        let port = server.port
        let client = try RawClient(port: port)
        server.route("/s", OriginResponse(fault: .stallBeforeHeader))
        client.send("GET /s HTTP/1.1\r\n\r\n")
        await server.waitForRequests(1)
        await server.stop()
        #expect(client.readAll().isEmpty)
        #expect(server.openConnectionCount == 0)
        #expect(server.currentRequestCount == 0)
        #expect(throws: RawClient.Refused.self) { try RawClient(port: port) }
    }

    @Test("Four hundred connections are served at once")
    func manyConnections() async throws {
        let server = try OriginServer()
        server.route("/s", OriginResponse(body: Array("x".utf8), fault: .stallBeforeHeader, closesConnection: true))
        let clients = try (0..<400).map { _ in try RawClient(port: server.port) }
        for client in clients { client.send("GET /s HTTP/1.1\r\n\r\n") }
        await server.waitForRequests(400)
        #expect(server.maxConcurrentRequestsSeen == 400)
        server.release("/s")
        for client in clients { #expect(client.readAll().hasSuffix("x")) }
    }

    @Test("An unusable address is an error", arguments: ["300.0.0.1", "192.0.2.1", "nonsense"])
    func badAddress(address: String) {
        #expect(throws: OriginError.self) { try OriginServer(address: address) }
    }
}

extension String {
    fileprivate func components(of needle: String) -> Int {
        var count = 0
        var rest = self[...]
        while let range = rest.firstRange(of: needle) {
            count += 1
            rest = rest[range.upperBound...]
        }
        return count
    }
}
