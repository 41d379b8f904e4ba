@testable import PrefetchModel
@testable import Queue
@testable import Redis

extension FuzzTarget {
    /// The first byte says what the others are: a reply in the protocol of Redis, fields of a hash (`NAME=VALUE` lines), or a text of its own.
    static func readReply(_ input: [UInt8]) throws {
        guard let choice = input.first else { return }
        let bytes = Array(input.dropFirst())
        let text = String(decoding: bytes, as: UTF8.self)
        switch choice & 3 {
        case 0: try readSnapshot(bytes)
        case 1: try readFields(bytes)
        default: try readTexts(bytes, text)
        }
    }

    private static func readSnapshot(_ bytes: [UInt8]) throws {
        var place = 0
        let value = reply(bytes, &place, depth: 0)
        _ = (value.int, value.count, value.milliseconds, value.string, value.fields, value.error?.asError)
        guard let array = value.array else { return }
        let snapshot = QueueSnapshot(array, RedisServerFacts(info: ""))
        try claim(snapshot.failedURLs >= 0 && snapshot.dead >= 0 && snapshot.waitingJobs >= 0, "a number below zero")
        _ = (snapshot.isFull, WorkerRecord.caches(of: Array(snapshot.workers.values)))
        _ = WorkerRecord.sandboxes(of: Array(snapshot.workers.values))
        if let limit = RunLimit(workers: snapshot.workers, batches: snapshot.batches) { _ = limit.cause }
        var all = WorkerReport()
        for worker in snapshot.workers.values { all.join(worker.report) }
        for batch in snapshot.batches { try check(batch) }
    }

    private static func readFields(_ bytes: [UInt8]) throws {
        var fields: [String: RedisValue] = [:]
        for line in bytes.split(separator: 0x0A) {
            guard let end = line.firstIndex(of: 0x3D) else { continue }
            fields[String(decoding: line[..<end], as: UTF8.self)] = .bytes(Array(line[(end + 1)...]))
        }
        let texts = fields.compactMapValues(\.string)
        let report = WorkerReport(fields: texts)
        _ = (report.state(leaseLeft: 1), report.silence(leaseLeft: 1), report.fields, report.transferring)
        var sum = report
        sum.join(report)
        for end in [nil, 1] as [Int?] {
            let record = WorkerRecord(id: "w", fields: fields, leaseEnd: end, at: 2)
            _ = (record.condition, record.silence)
        }
        if let batch = BatchStatus(id: "b", fields: fields, at: 1_700_000_000_000) { try check(batch) }
        let settings = BatchSettings(fields: fields)
        try claim(BatchOptions(encoded: settings.options.encoded) == settings.options, "options that are not read back")
        _ = BatchCaches(fields: texts).all
        _ = FetchTally(fields: fields)
        _ = LimitTimes(fields: fields)
    }

    private static func check(_ batch: BatchStatus) throws {
        try claim(batch.total >= 0 && batch.counts.finished >= 0 && batch.counts.skipped >= 0, "a number below zero")
        try claim(batch.listFiles.allSatisfy { $0 >= 0 }, "a file of fewer than no lines")
        _ = (batch.elapsed, batch.didFinish)
    }

    private static func readTexts(_ bytes: [UInt8], _ text: String) throws {
        let time = 1_700_000_000_000
        let decoded = FailureRecord.decode(bytes)
        try claim(decoded.records.keys.allSatisfy { (0...255).contains($0) }, "a position that is none")
        for record in decoded.records.values { try claim(record.seconds ?? 0 >= 0, "before its batch") }
        _ = FailedURLEntry(meta: text).hasLapsed(at: time)
        if let detail = FailureDetail(encoded: text) {
            // What is too long is cut when it is written.
            if let again = FailureDetail(encoded: detail.encoded()) {
                try claim(
                    again.url.utf8.elementsEqual(detail.url.utf8) && again.line == detail.line, "another URL: \(text)")
            } else {
                throw Contradiction(description: "a failure that is not read back: \(text)")
            }
        }
        if let error = WebImageError(note: text) {
            guard let again = WebImageError(note: error.note) else {
                throw Contradiction(description: "a note that is not read back: \(text)")
            }
            try claim(again.code == error.code && again.httpStatus == error.httpStatus, "another failure: \(text)")
        }
        if let problem = HostProblem(host: "host.test", note: text, now: time) {
            _ = (problem.news, problem.isInBackOff)
        }
        if let names = NameReport(text) {
            try claim(NameReport((names + names).text) != nil, "names that are not read back")
        }
        if let note = OpenURLNote(Substring(text)) { _ = OpenURLNote(Substring(note.encoded)) }
        if let settings = URLSettings(text: text) {
            _ = (settings.source, settings.revalidatesHits)
            try claim(settings.rules.isEmpty || !settings.rules.words.isEmpty, "rules without words")
        }
        _ = (ProgressMark.marks(text), WorkerFigures.hostWaits(text), QueueControl.concurrency(text))
        _ = (
            RedisReplyError(text).asError, RedisServerFacts(info: text),
            BatchIdentity(id: "b", nonce: "n").range(ofClaim: text)
        )
    }

    /// The protocol's five types (RESP 2); nil, too deep and cut are `null`.
    private static func reply(_ bytes: [UInt8], _ place: inout Int, depth: Int) -> RedisValue {
        guard place < bytes.count, depth < 7 else {
            // An array around it would go on without end.
            place = bytes.count
            return .null
        }
        let kind = bytes[place]
        let end = bytes[place...].firstIndex(of: 0x0A) ?? bytes.endIndex
        let line = String(decoding: bytes[(place + 1)..<max(end, place + 1)], as: UTF8.self)
        place = min(end + 1, bytes.count)
        switch kind {
        case UInt8(ascii: "+"): return .status(line)
        case UInt8(ascii: "-"): return .error(RedisReplyError(line))
        case UInt8(ascii: ":"): return Int(line).map { .integer($0) } ?? .null
        case UInt8(ascii: "$"):
            guard let count = Int(line), count >= 0 else { return .null }
            let part = bytes[place..<min(bytes.count, place + min(count, bytes.count))]
            place = part.endIndex
            return .bytes(Array(part))
        case UInt8(ascii: "*"):
            guard let count = Int(line), count >= 0 else { return .null }
            var elements: [RedisValue] = []
            while elements.count < count, place < bytes.count {
                elements.append(reply(bytes, &place, depth: depth + 1))
            }
            return .array(elements)
        // Shorter than the protocol's, for what has to be found by chance: one line of bytes.
        default: return .bytes(Array(line.utf8))
        }
    }
}
