import Redis
import TestSupport
import Testing
import WebImage

@testable import Prefetch
@testable import Queue

/// What is kept of every failure, also where no detail is.
@Suite("Records of failures", .timeLimit(.minutes(5)))
struct FailureRecordTests {
    private func records(_ f: QueueFixture, _ range: Range<Int>) async throws -> [Int: FailureRecord] {
        let status = try #require(try await f.queue.batches.status(of: "b"))
        return try await FailureRecords(queue: f.queue, status: status).read(range)
    }

    /// Some failures of a job, without a detail of any.
    private func report(
        _ base: Int, _ failures: [(position: Int, outcome: PrefetchOutcome, status: Int?, tries: Int)]
    )
        -> QueueReports.Report
    {
        let settled = failures.map { failure in
            var item = SettledEntry(position: failure.position, outcome: failure.outcome)
            item.failure = FailureDetail(
                line: 1, url: "http://h/", outcome: failure.outcome, httpStatus: failure.status,
                tries: failure.tries, detail: "no")
            return item
        }
        return QueueReports.Report(
            job: "b:\(base):200", batch: BatchIdentity(id: "b", nonce: "b"), base: base, count: 200, isFinal: false,
            settled: settled, keepDetails: 0)
    }

    @Test("Status, tries and time of a failure are kept beyond the bound of details, by the first report alone")
    func firstWrite() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [200, 200], fields: [("details", "0")])
        try await f.join("w", "v")
        // A job that lies in two chunks, and neighbours that ended alike.
        let first = report(
            200,
            [
                (0, .httpError, 404, 1), (1, .httpError, 404, 1), (2, .httpError, 404, 2), (55, .timeout, nil, 3),
                (56, .timeout, nil, 3), (57, .timeout, nil, 3), (199, .httpError, 65_535, 400),
            ])
        _ = try await f.queue.reports.send([first], worker: "w")
        let found = try await records(f, 0..<400)
        let seconds = try #require(found[200]?.seconds)
        #expect((0...30).contains(seconds))
        func record(_ status: Int?, _ tries: Int) -> FailureRecord {
            FailureRecord(httpStatus: status, tries: tries, seconds: seconds)
        }
        #expect(
            found == [
                200: record(404, 1), 201: record(404, 1), 202: record(404, 2), 255: record(nil, 3), 256: record(nil, 3),
                257: record(nil, 3), 399: record(65_535, 255),
            ])
        let keys = f.keys
        let kept = try await f.redis("HGETALL", keys.records("b"))
        #expect(try await f.redis("HSTRLEN", keys.records("b"), "0").int == 3 * FailureRecord.size)
        // Lost replies, and another worker that says something else.
        _ = try await f.queue.reports.send([first], worker: "w")
        let late = report(200, [(0, .dns, nil, 9), (1, .dns, nil, 9), (3, .dns, nil, 9)])
        _ = try await f.queue.reports.send([late], worker: "v")
        #expect(try await records(f, 0..<203).count == 3)
        #expect(
            try await records(f, 203..<204) == [
                203: FailureRecord(tries: 9, seconds: try await records(f, 203..<204)[203]?.seconds)
            ])
        try await f.redis("HDEL", keys.skipped("b"), "x")
        #expect(try await f.redis("HGET", keys.records("b"), "1") == f.value("1", in: kept))
        #expect(try await f.redis("EXISTS", keys.skipped("b")).int == 0)
        #expect(try await f.findings("b") == [])
    }

    @Test("Records go with the results: at their end of time, and when the batch is removed")
    func expiry() async throws {
        let f = try await QueueFixture()
        try await f.fill(sizes: [2], fields: [("keep", "600")])
        try await f.join("w")
        try await f.finish(try await f.claim("w", 1)[0].job, "w", .httpError)
        #expect((500...600).contains(try await f.redis("TTL", f.keys.records("b")).int ?? 0))
        #expect(try await f.queue.batches.remove(batch: "b") == .removed)
        #expect(try await f.redis("EXISTS", f.keys.records("b")).int == 0)
    }

    /// Slow on purpose: it is the real script that the memory of 250,000 failures is measured of, reported job by job.
    @Test(
        "250,000 failures that are spread over a list take at most 8 MB, and all but none where they are together",
        .thorough, arguments: [250_000, 1_000_000, 10_000_000])
    func memory(_ total: Int) async throws {
        let f = try await QueueFixture()
        try await f.open(fields: [("details", "0"), ("total", String(total))])
        let every = total / 250_000
        var reports: [QueueReports.Report] = []
        for base in stride(from: 0, to: total, by: 256) {
            let count = min(256, total - base)
            let positions = (0..<count).filter { (base + $0) % every == 0 }
            guard !positions.isEmpty else { continue }
            let settled = positions.map { position in
                var item = SettledEntry(position: position, outcome: .httpError)
                // Neighbours differ, so that no entry has two.
                item.failure = FailureDetail(
                    line: 1, url: "", outcome: .httpError, httpStatus: 400 + (base + position) / every % 100,
                    tries: 3, detail: "")
                return item
            }
            reports.append(
                QueueReports.Report(
                    job: "b:\(base):\(count)", batch: BatchIdentity(id: "b", nonce: "b"), base: base, count: count,
                    isFinal: false, settled: settled,
                    keepDetails: 0))
            if reports.count == 512 {
                _ = try await f.queue.reports.send(reports, worker: "w")
                reports = []
            }
        }
        _ = try await f.queue.reports.send(reports, worker: "w")
        #expect(try await f.field("skipped", of: "b") == "250000")
        let bytes = try #require(
            try await f.redis("MEMORY", "USAGE", f.keys.records("b"), "SAMPLES", "0").int)
        #expect(bytes <= 8_000_000, "\(bytes) bytes of 250,000 failures among \(total) URLs")
        let last = 249_999 * every
        #expect(try await records(f, last..<(last + 1))[last]?.httpStatus == 499)
        try await f.redis("UNLINK", f.keys.records("b"), f.keys.outcomes("b"))
    }

    @Test("A run of failures that ended alike takes nine bytes, and every record of it is read")
    func runs() {
        let settled = (0..<256).map { position in
            var item = SettledEntry(position: position, outcome: .httpError)
            item.failure = FailureDetail(
                line: 1, url: "", outcome: .httpError, httpStatus: position == 128 ? 500 : 404, detail: "")
            return item
        }
        let entries = FailureRecord.entries(of: settled.reversed())
        #expect(
            entries == [0, 127, 1, 148, 0, 128, 128, 1, 244, 0, 129, 255, 1, 148, 0])
        var hit = SettledEntry(position: 7, outcome: .hit)
        #expect(FailureRecord.entries(of: [hit]) == [])
        hit.outcome = .blacklisted
        #expect(FailureRecord.entries(of: [hit]) == [7, 7, 0, 0, 0])
        let chunk: [UInt8] = [0, 255, 1, 148, 2, 0, 0, 1, 0]
        let (records, isSound) = FailureRecord.decode(chunk)
        #expect(isSound && records.count == 256)
        #expect(records[255] == FailureRecord(httpStatus: 404, tries: 2, seconds: 256))
        #expect(!FailureRecord.decode(chunk + [1]).isSound && !FailureRecord.decode(chunk + chunk).isSound)
        #expect(!FailureRecord.decode([9, 8, 0, 0, 0, 0, 0, 0, 0]).isSound)
    }
}

extension QueueFixture {
    /// A field of a hash that was read whole.
    fileprivate func value(_ name: String, in hash: RedisValue) -> RedisValue {
        hash.fields?[name] ?? .null
    }
}
