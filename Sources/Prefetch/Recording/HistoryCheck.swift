internal import Redis
internal import WebImage

/// Classifies every URL of a batch by the histories of its workers and by Redis: the classes of Jepsen's total-queue test.
///
/// Redis may have been killed in between and have lost its last second: outcomes it had confirmed are then redone, and count as recovered.
package struct HistoryCheck: Sendable {
    package enum Class: String, Sendable, CaseIterable {
        /// Settled by its only worker, which got the confirmation.
        case ok
        /// Settled once in spite of several workers, a missing confirmation, or a loss in Redis.
        case recovered
        /// Open in a batch that is done; or confirmed to a worker, but Redis has another outcome or none.
        case lost
        /// Two reports were confirmed as the first to settle it.
        case duplicated
        /// An outcome without a history, an index outside the batch, or not the expected outcome.
        case unexpected
        case cancelled
        case open

        /// Classes that a correct queue does not have.
        package var isBad: Bool { self == .lost || self == .duplicated || self == .unexpected }
    }

    package struct Example: Sendable, Equatable {
        package var kind: Class
        package var index: Int
        package var message: String
    }

    package struct Result: Sendable {
        package fileprivate(set) var counts: [Class: Int] = [:]
        package fileprivate(set) var examples: [Example] = []
        package fileprivate(set) var files = 0
        /// Lines torn by the death of their writer.
        package fileprivate(set) var torn = 0
        /// Redis starts that confirmed outcomes of this batch.
        package fileprivate(set) var servers = 0

        package var isGood: Bool { !counts.contains { $0.key.isBad && $0.value > 0 } }

        fileprivate mutating func add(_ kind: Class, _ index: Int, _ message: @autoclosure () -> String) {
            counts[kind, default: 0] += 1
            guard kind.isBad, examples.count(where: { $0.kind == kind }) < HistoryCheck.maxExamples else { return }
            examples.append(Example(kind: kind, index: index, message: message()))
        }
    }

    private static let maxExamples = 5
    private static let step = 1 << 20

    private let queue: PrefetchQueue
    private let batch: String
    private let folder: String

    package init(queue: PrefetchQueue, batch: String, folder: String) {
        self.queue = queue
        self.batch = batch
        self.folder = folder
    }

    /// Reads everything and classifies every URL. Workers may go on meanwhile.
    /// * `expected`: outcomes allowed for an index, with downloaded and hit being equal; nil: any.
    /// - Throws: `notFound` if there is no such batch, or no history; errors of reading them.
    package func run(
        expected: (Int) -> Set<PrefetchOutcome>? = { _ in nil }
    ) async throws(PrefetchError) -> Result {
        // Outcomes are read before the histories and again after them: those in Redis now were sent before, and those confirmed to a worker
        // by now are in Redis then.
        let before = try await read().outcomes
        var tally = HistoryTally(count: before.count)
        var reader = HistoryReader(folder: folder, queue: queue.catalog.queueName, batch: batch)
        try reader.forEach { tally.add($0) }
        let now = try await read()
        let current = reader.servers[Array(now.server.utf8)]
        var result = Result()
        (result.files, result.torn, result.servers) = (reader.files, reader.torn, reader.servers.count)
        for index in 0..<max(now.outcomes.count, tally.count) {
            let code = index < now.outcomes.count ? now.outcomes[index] : 0
            let wasOpen = index >= before.count || before[index] == 0
            let known = index < tally.count ? tally[index] : HistoryTally.Entry()
            judge(index, code, wasOpen, known, now.status, current, expected(index), &result)
        }
        return result
    }

    private func judge(
        _ index: Int, _ code: UInt8, _ wasOpen: Bool, _ known: HistoryTally.Entry, _ status: BatchStatus,
        _ current: Int?, _ expected: Set<PrefetchOutcome>?, _ result: inout Result
    ) {
        let outcome = PrefetchOutcome(code: code)
        let told = known.confirmations.map { "\(name($0.code))" }.joined(separator: ", ")
        guard index < status.total else {
            if code != 0 || known != HistoryTally.Entry() {
                result.add(.unexpected, index, "the batch has \(status.total) URLs")
            }
            return
        }
        // One Redis start has no two firsts, and forgets nothing.
        let starts = known.confirmations.map(\.server)
        if Set(starts).count < starts.count {
            return result.add(.duplicated, index, "first settled by \(starts.count) reports: \(told)")
        }
        if let current, let kept = known.confirmations.first(where: { $0.server == current }), kept.code != code {
            return result.add(.lost, index, "a worker was told \(name(kept.code)), and Redis has \(name(code))")
        }
        if code == 0 {
            if status.state == .done {
                return result.add(
                    .lost, index, "open in a batch that is done" + (told.isEmpty ? "" : "; told: \(told)"))
            }
            if let expected, status.state == .cancelled, !expected.contains(.cancelled) {
                return result.add(.unexpected, index, "cancelled, expected \(names(expected))")
            }
            return result.add(status.state == .cancelled ? .cancelled : .open, index, "")
        }
        guard let outcome else { return result.add(.unexpected, index, "there is no outcome \(code)") }
        let isExplained = known.wasSent(code) || known.confirmations.contains { $0.code == code }
        if !isExplained && !wasOpen {
            return result.add(.unexpected, index, "\(outcome.name), and no history has such a report")
        }
        if let expected, !expected.contains(where: { $0 == outcome || !$0.isSkipped && !outcome.isSkipped }) {
            return result.add(.unexpected, index, "\(outcome.name), expected \(names(expected))")
        }
        let isPlain = known.confirmations.count == 1 && known.confirmations[0].code == code && !known.hadSeveralWorkers
        result.add(isPlain ? .ok : .recovered, index, "")
    }

    private func name(_ code: UInt8) -> String {
        code == 0 ? "nothing" : PrefetchOutcome(code: code)?.name ?? "\(code)"
    }

    private func names(_ outcomes: Set<PrefetchOutcome>) -> String {
        outcomes.sorted { $0.rawValue < $1.rawValue }.map(\.name).joined(separator: " or ")
    }

    private func read() async throws(PrefetchError) -> (status: BatchStatus, outcomes: [UInt8], server: String) {
        do throws(RedisError) {
            if let status = try await queue.batches.status(of: batch) {
                var outcomes: [UInt8] = []
                repeat {
                    // One more than the batch has: there must be nothing beyond its end.
                    let end = min(outcomes.count + Self.step, status.total + 1)
                    outcomes += try await queue.results.outcomes(
                        of: batch, range: outcomes.count..<max(end, outcomes.count + 1))
                } while outcomes.count <= status.total
                let facts = try await queue.redis.patiently { () async throws(RedisError) in
                    try await queue.connection.serverFacts()
                }
                return (status, outcomes, facts.runID)
            }
        } catch {
            throw PrefetchError(error)
        }
        throw PrefetchError(.notFound, "there is no batch '\(batch)'", hint: "see them all: prefetch-coord status")
    }
}
