internal import Redis
internal import WebImage

/// What became of every URL of a batch, by the histories of its workers and by Redis together: the classes of Jepsen's total-queue test.
///
/// Redis may have been killed in between and have lost its last second: what it had confirmed then is done again, and is recovered.
package struct HistoryCheck: Sendable {
    /// What became of one URL.
    package enum Class: String, Sendable, CaseIterable {
        /// Settled by the one worker that had it, which was told so.
        case ok
        /// Settled once all the same: several workers had it, or the one that settled it was never told, or Redis forgot it in between.
        case recovered
        /// Open in a batch that is done; or a worker was told that it settled it, and Redis has another outcome or none.
        case lost
        /// Two reports were told that they were the first to settle it.
        case duplicated
        /// An outcome that no history explains, an index the batch does not have, an outcome other than expected.
        case unexpected
        /// Open in a batch that was cancelled.
        case cancelled
        /// Open in a batch that runs.
        case open

        /// Whether a queue that keeps its promises has none.
        package var isBad: Bool { self == .lost || self == .duplicated || self == .unexpected }
    }

    /// One URL and why it is in its class.
    package struct Example: Sendable, Equatable {
        package var kind: Class
        package var index: Int
        /// One sentence.
        package var message: String
    }

    /// What was found.
    package struct Result: Sendable {
        /// How many URLs of each class.
        package fileprivate(set) var counts: [Class: Int] = [:]
        /// The first of each bad class.
        package fileprivate(set) var examples: [Example] = []
        /// Histories that were read.
        package fileprivate(set) var files = 0
        /// Lines torn by the death of who wrote them.
        package fileprivate(set) var torn = 0
        /// Starts of Redis that confirmed something of this batch.
        package fileprivate(set) var servers = 0

        /// Whether nothing is lost, duplicated or unexpected.
        package var isGood: Bool { !counts.contains { $0.key.isBad && $0.value > 0 } }

        fileprivate mutating func add(_ kind: Class, _ index: Int, _ message: @autoclosure () -> String) {
            counts[kind, default: 0] += 1
            guard kind.isBad, examples.count(where: { $0.kind == kind }) < HistoryCheck.mostExamples else { return }
            examples.append(Example(kind: kind, index: index, message: message()))
        }
    }

    private static let mostExamples = 5
    private static let step = 1 << 20

    private let queue: PrefetchQueue
    private let batch: String
    private let folder: String

    /// * `folder`: where the workers kept their histories.
    package init(queue: PrefetchQueue, batch: String, folder: String) {
        self.queue = queue
        self.batch = batch
        self.folder = folder
    }

    /// Reads everything and classifies every URL. Workers may go on meanwhile.
    ///
    /// * `expected`: outcomes allowed for an index, an image downloaded or hit being the same; nil: any.
    /// - Throws: `notFound` where there is no such batch, or no history; what reading them throws.
    package func run(
        expected: (Int) -> Set<PrefetchOutcome>? = { _ in nil }
    ) async throws(PrefetchError) -> Result {
        // Outcomes are read before the histories and again after them: what Redis has now was sent before, and what a worker has been
        // told by now Redis has then.
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
        // The same start of Redis has no two firsts, and forgets nothing.
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

    /// What Redis has, and which start of it says so.
    private func read() async throws(PrefetchError) -> (status: BatchStatus, outcomes: [UInt8], server: String) {
        do throws(RedisError) {
            if let status = try await queue.batches.status(of: batch) {
                var outcomes: [UInt8] = []
                repeat {
                    // One more than the batch has: what is beyond its end must not be there.
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
