import Glibc
import TestSupport
import Testing
import Threading

@testable import PrefetchCommands

/// What clients can hold up, with responses that a queue seldom has. MetricsServingTests asks the program.
@Suite("Server of metrics", .timeLimit(.minutes(5)))
struct MetricsServerTests {
    private static let ask = "GET /healthz HTTP/1.1\r\n\r\n"

    private static func head(_ status: String, length: Int) -> String {
        "HTTP/1.1 \(status)\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: \(length)\r\n"
            + "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
    }
    private static let answer = head("200 OK", length: 3) + "ok\n"

    /// Serves clients that block, and nobody after them.
    private func serve<Result: Sendable>(
        _ answer: @escaping @Sendable (MetricsServer.Request) async -> MetricsServer.Response,
        _ clients: @escaping @Sendable (_ port: Int) throws -> Result
    ) async throws -> Result {
        let pool = ThreadPool(threads: 1, name: "clients")
        let end = Locked<(result: Result, port: Int)?>(nil)
        try await MetricsServer.listening(on: ListenAddress(host: "127.0.0.1", port: 0)) { server in
            async let served: Void = server.run(answer)
            let port = server.bound
            let result = try await pool.run { try clients(port) }
            end.withLock { $0 = (result, port) }
            server.stop()
            await served
        }
        let (result, port) = try #require(end.withLock { $0 })
        #expect(throws: RawClient.Refused.self) { try RawClient(port: port) }
        return result
    }

    @Test(
        "Large responses arrive whole, several at once, however slowly they were asked for, and without a body for HEAD"
    )
    func large() async throws {
        let body = String(repeating: "0123456789abcdef", count: 1 << 19)
        let said = try await serve({ _ in MetricsServer.Response(status: 200, body: body) }) { port in
            let asks = ["GET", "HEAD", "GET", "GET"].map { "\($0) /metrics HTTP/1.1\r\nHost: h\r\n\r\n" }
            let clients = try asks.map { _ in try RawClient(port: port) }
            // A byte of each in turn.
            for index in 0..<asks[1].utf8.count {
                for (client, ask) in zip(clients, asks) where index < ask.utf8.count {
                    client.send(String(Array(ask.unicodeScalars)[index]))
                }
            }
            return clients.map { $0.readAll() }
        }
        let head = Self.head("200 OK", length: body.utf8.count)
        #expect(said.map { $0 == head + body } == [true, false, true, true] && said[1] == head)
    }

    @Test("Clients that say nothing, half of a request or empty lines, or do not read, are cut off, and hold up nobody")
    func slow() async throws {
        let body = String(repeating: "0123456789abcdef", count: 1 << 20)
        let said = try await serve(
            { MetricsServer.Response(status: 200, body: $0.path == "/healthz" ? "ok\n" : body) },
            { port in
                let slow = try ["", "HEAD /met", "GET /met", "\r\n", "GET /metrics HTTP/1.1\r\n\r\n"].map { start in
                    let client = try RawClient(port: port)
                    client.send(start)
                    return client
                }
                let other = try RawClient(port: port)
                other.send(Self.ask)
                let first = other.readAll()
                slow[4].sendUntilReset()
                let isWhole = slow[4].readAll().utf8.count > body.utf8.count
                return [first] + slow.dropLast().map { $0.readAll() } + [isWhole ? "whole" : "cut off"]
            })
        let timeout = Self.head("408 Request Timeout", length: 20)
        #expect(said == [Self.answer, "", timeout, timeout + "408 Request Timeout\n", "", "cut off"])
    }

    @Test("Who leaves before the response keeps the place until it is there: never are more than 64 requests in work")
    func gone() async throws {
        let (requests, latch) = (Locked(0), Latch())
        let said = try await serve(
            { request in
                guard request.path == "/wait" else { return MetricsServer.Response(status: 200, body: "ok\n") }
                let number = requests.withLock { requests in
                    requests += 1
                    return requests
                }
                // One too many is let through, so that the test ends.
                if number > 64 { latch.open() }
                await latch.wait()
                return MetricsServer.Response(status: 503, body: "late\n")
            },
            { port in
                for number in 1...64 {
                    let client = try RawClient(port: port)
                    client.send("GET /wait HTTP/1.1\r\n\r\n")
                    while requests.withLock({ $0 }) < number { sched_yield() }
                    client.reset()
                }
                let refused = try (0..<200).map { _ in
                    let client = try RawClient(port: port)
                    client.send("GET /wait HTTP/1.1\r\n\r\n")
                    return client.readAll()
                }
                let inWork = requests.withLock { $0 }
                latch.open()
                var answer = ""
                while answer.isEmpty {
                    let client = try RawClient(port: port)
                    client.send(Self.ask)
                    answer = client.readAll()
                }
                return (refused, inWork, answer, requests.withLock { $0 })
            })
        #expect(said == ([String](repeating: "", count: 200), 64, Self.answer, 64))
    }

    @Test("Places whose response has been sent are free for others, without waiting for who had them")
    func sent() async throws {
        let said = try await serve({ _ in MetricsServer.Response(status: 200, body: "ok\n") }) { port in
            // None of them closes its connection.
            let clients = try (0..<200).map { _ in
                let client = try RawClient(port: port)
                client.send(Self.ask)
                return (client, client.readUntil("ok\n"))
            }
            return clients.map(\.1)
        }
        #expect(said == [String](repeating: Self.answer, count: 200))
    }
}
