import Origin
import TestSupport
import Testing
import Threading
import WebImage

@testable import Prefetch
@testable import Queue

@Suite("Workers whose resolver answers nothing", .timeLimit(.minutes(5)))
struct SilentResolverTests {
    @Test("It is said once, ends no URL, holds no other back, and is over when the resolver answers")
    func silent() async throws {
        let fixture = try await WorkerFixture()
        fixture.origin.setFallback { _ in
            OriginResponse(body: GeneratedImage.png(seed: 4, width: 12, height: 12))
        }
        let names = try OriginResolver { _ in .silence }
        let port = fixture.origin.port
        let urls =
            (0..<40).map { "http://host\($0).test:\(port)/\($0).png" }
            + (0..<10).map { fixture.origin.url("/literal\($0).png") }
        let queue = try fixture.queue()
        let id = try await fixture.submit(urls, to: queue)
        let warnings = Locked<[String]>([])
        let worker = try fixture.worker(
            configure: {
                ($0.maxConcurrentDownloads, $0.lease) = (4, 1000)
                $0.onEvent = { event in
                    if case .warning(let text) = event { warnings.withLock { $0.append(text) } }
                }
            },
            downloads: {
                $0.dnsServers = [names.place]
                $0.ipVersion = .v4
                // Of names, far less than the silence.
                $0.hosts.waitLimit = 0.5
                $0.hosts.failuresInARow = 1
            })
        let run = Task { try await worker.run() }
        // More URLs wait for their names than there are slots: the others are fetched before anything is answered.
        #expect(try await becomes { try await queue.batches.status(of: id)?.counts[.downloaded] == 10 })
        #expect(await becomes { !warnings.withLock { $0 }.isEmpty })
        let report = try await queue.workerRecords.all().first?.report
        #expect(report?.trouble == "")
        #expect(try await queue.batches.status(of: id)?.counts.skipped == 0)
        names.setZone { .addresses(["127.0.0.1"], to: $0) }
        let counts = try await run.value
        #expect(counts.finished == 50 && counts.skipped == 0)
        let said = warnings.withLock { $0 }
        #expect(said.count == 1 && said[0].hasPrefix("the resolver has answered nothing since "), "\(said)")
        #expect(said.first?.contains("--dns-servers") == true)
        let figures = try #require(try await queue.workerRecords.all().first?.report.names)
        // As of its last heartbeat, after which the rest may have been answered.
        #expect(figures.unanswered > 0 && figures.queries > 0)
        #expect(names.counts.queries >= 40)
    }

    @Test("What a worker says of its names is read as it was written, and other texts are none")
    func report() {
        var report = NameReport()
        (report.queries, report.answered, report.noNames, report.failed) = (10, 5, 2, 1)
        (report.unanswered, report.cacheHits, report.window, report.waiting, report.silence) = (2, 7, 64, 3, 1500)
        #expect(NameReport(report.text) == report)
        #expect(report.text == "10 5 2 1 2 7 64 3 1500")
        for text in ["", "1 2 3", "a b c d e f g h i", "1 2 3 4 5 6 7 8 9 10"] { #expect(NameReport(text) == nil) }
        let sum = report + report
        #expect(sum.queries == 20 && sum.silence == 1500)
    }
}
