import Origin
import Testing

@testable import WebImage

@Suite("Hostile answers of a resolver", .timeLimit(.minutes(5)))
struct HostileNameTests {
    private func failure(
        of name: String, _ zone: @escaping OriginResolver.Zone
    ) async throws -> (error: WebImageError?, queries: Int, figures: NameFigures) {
        let origin = try OriginServer()
        origin.setFallback { _ in OriginResponse(body: [1]) }
        let names = try OriginResolver(zone: zone)
        let downloader = try makeDownloader {
            $0.dnsServers = [names.place]
            $0.ipVersion = .v4
            $0.hosts.waitLimit = 1
        }
        let error = await downloader.failure("http://\(name):\(origin.port)/")
        if error == nil { #expect(await downloader.failure("http://\(name):\(origin.port)/again") == nil) }
        return (error, names.counts.queries, await downloader.activity.names)
    }

    @Test("An answer to another query is none")
    func wrongID() async throws {
        let result = try await failure(of: "forged.test") { question in
            var answer = NameAnswer.addresses([question.number == 1 ? "10.0.0.1" : "127.0.0.1"], to: question)
            answer.hasWrongID = question.number == 1
            return answer
        }
        #expect(result.error == nil && result.queries == 2 && result.figures.unanswered == 1)
    }

    @Test("Names that stand for each other have no address")
    func loop() async throws {
        let result = try await failure(of: "a.test") { _ in
            NameAnswer(records: [.alias("b.test", of: "a.test"), .alias("a.test", of: "b.test")])
        }
        #expect(
            result.error?.code == .cannotFindHost && result.error?.outcome == .dns, "\(result.error?.message ?? "")")
    }

    @Test("A name that stands for another one with an address has it")
    func alias() async throws {
        let result = try await failure(of: "www.test") { _ in
            NameAnswer(
                records: [.alias("cdn.test", of: "www.test")]
                    + [NameAnswer.Record.address("127.0.0.1", of: "cdn.test")].compactMap { $0 })
        }
        #expect(result.error == nil && result.queries == 1)
    }

    @Test("A truncated answer is asked for over TCP, and of thousands of addresses few are kept")
    func huge() async throws {
        let all = (0..<2000).map { "127.0.\(1 + $0 / 250).\(1 + $0 % 250)" }
        let result = try await failure(of: "huge.test") { question in
            .addresses(["127.0.0.1"] + all, to: question)
        }
        #expect(result.error == nil && result.queries == 2 && result.figures.queries == 1)
    }

    @Test("TTLs of 0 and of 2^31 are kept for a time between", arguments: [0, 1 << 31, UInt32.max])
    func lifetimes(ttl: UInt32) async throws {
        let result = try await failure(of: "ttl.test") { .addresses(["127.0.0.1"], to: $0, ttl: ttl) }
        #expect(result.error == nil && result.queries == 1)
    }

    @Test("Bytes that are no answer are a failure of the resolver, which is asked again")
    func garbage() async throws {
        let result = try await failure(of: "noise.test") { question in
            var answer = NameAnswer.addresses(["127.0.0.1"], to: question)
            // A response with this question, and a record that ends in its middle.
            if question.number == 1 {
                answer.raw = [0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0] + question.echo + [0xc0, 0x0c, 0, 1, 0, 1, 0, 0]
            }
            return answer
        }
        #expect(result.error == nil && result.queries == 2 && result.figures.failed == 1)
    }
}
