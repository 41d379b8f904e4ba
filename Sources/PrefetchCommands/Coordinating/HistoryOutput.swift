internal import FoundationEssentials
internal import Glibc
internal import Prefetch
internal import WebImage

/// `fsck --history`: what became of every URL, by the histories of the workers.
struct HistoryOutput: Sendable {
    /// The folder of the histories.
    let folder: String
    /// What each line has to end as; nil: anything.
    let expected: [Int: Set<PrefetchOutcome>]?

    /// * `expect`: a file of `line<TAB>outcome[|outcome]`.
    /// - Throws: `unreadableList` where it is something else.
    init(folder: String, expect: String?) throws(PrefetchError) {
        self.folder = folder
        expected = try expect.map { path throws(PrefetchError) in try Self.read(path) }
    }

    /// Checks one batch.
    func check(_ id: String, _ queue: PrefetchQueue) async throws(PrefetchError) -> HistoryCheck.Result {
        let check = HistoryCheck(queue: queue, batch: id, folder: folder)
        guard let expected else { return try await check.run() }
        let byIndex = try await indices(of: id, queue, expected)
        return try await check.run { byIndex[$0] }
    }

    /// What is expected of each index: a line has another number where the list has comments, or the batch is a retry.
    private func indices(
        of id: String, _ queue: PrefetchQueue, _ expected: [Int: Set<PrefetchOutcome>]
    ) async throws(PrefetchError) -> [Int: Set<PrefetchOutcome>] {
        let chain = try await BatchChain.read(id, queue: queue)
        guard let status = chain.batches.first(where: { $0.id == id }) else {
            throw PrefetchError(.notFound, "there is no batch '\(id)'")
        }
        var byIndex: [Int: Set<PrefetchOutcome>] = [:]
        var index = 0
        var lines = Set(expected.keys)
        try await BatchEntries(of: status, queue: queue).forEach { entry async throws(PrefetchError) in
            byIndex[index] = expected[entry.line]
            lines.remove(entry.line)
            index += 1
            return true
        }
        if let line = lines.min() {
            throw PrefetchError(
                .unreadableList, "\(lines.count) expected lines are not in \(id), the first is line \(line)",
                hint: "give the expectations of this batch: --expect FILE")
        }
        return byIndex
    }

    private static func read(_ path: String) throws(PrefetchError) -> [Int: Set<PrefetchOutcome>] {
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
            throw PrefetchError(
                .unreadableList, "cannot read \(path): \(String(cString: strerror(errno)))",
                hint: "give lines of: number of the line, TAB, outcome or outcome|outcome")
        }
        var expected: [Int: Set<PrefetchOutcome>] = [:]
        for (number, row) in text.split(separator: "\n").enumerated() {
            let fields = row.split(separator: "\t")
            let outcomes = fields.last?.split(separator: "|").map { PrefetchOutcome(name: String($0)) } ?? []
            guard fields.count == 2, let line = Int(fields[0]), !outcomes.isEmpty, !outcomes.contains(nil) else {
                throw PrefetchError(
                    .unreadableList, "line \(number + 1) of \(path) is not 'LINE<TAB>OUTCOME'",
                    hint: "write: number of the line, TAB, outcome or outcome|outcome")
            }
            expected[line] = Set(outcomes.compactMap { $0 })
        }
        return expected
    }

    /// For a person.
    static func lines(_ id: String, _ result: HistoryCheck.Result) -> [String] {
        let counts = HistoryCheck.Class.allCases.filter { $0.isBad || $0 == .ok || result.counts[$0] ?? 0 > 0 }
            .map { "\($0.rawValue) \(Wording.count(result.counts[$0] ?? 0))" }
        return ["\(TerminalText.escaped(id)): \(result.files) histories: \(counts.joined(separator: ", "))"]
            + result.examples.map {
                "\(TerminalText.escaped(id)): \($0.kind.rawValue): index \($0.index): \($0.message)"
            }
    }

    /// For a program.
    static func json(_ id: String, _ result: HistoryCheck.Result) -> JSONText {
        .object(
            [("batch", .string(id)), ("histories", .int(result.files)), ("torn", .int(result.torn))]
                + [("servers", .int(result.servers))]
                + HistoryCheck.Class.allCases.map { ($0.rawValue, .int(result.counts[$0] ?? 0)) }
                + [
                    (
                        "examples",
                        .array(
                            result.examples.map {
                                .object([
                                    ("class", .string($0.kind.rawValue)), ("index", .int($0.index)),
                                    ("message", .string($0.message)),
                                ])
                            })
                    )
                ])
    }
}
