internal import Glibc
internal import Prefetch
internal import Redis

/// Writes the page of a batch.
struct BatchReport: Sendable {
    let queue: PrefetchQueue
    let id: String

    /// * `path`: nil is standard output.
    /// - Throws: `configuration` for a terminal; `cacheUnavailable` where the file cannot be written.
    static func check(_ path: String?) throws(PrefetchError) {
        guard path != nil || !Console.isTerminal(STDOUT_FILENO) else {
            throw PrefetchError(
                .configuration, "a page is nothing to read on a terminal", hint: "name a file: -o report.html")
        }
        if let path { try OutputFile.check(path) }
    }

    func write(to path: String?, overwrites: Bool) async throws {
        if let path { try await check(path, overwrites: overwrites) }
        let text = try await page().page.text
        guard let path else { return Console.print(Array(text.utf8)) }
        let file = try OutputFile(path: path)
        try file.write(Array(text.utf8))
        try file.commit()
        Console.note("\(TerminalText.escaped(path)): \(Wording.bytes(text.utf8.count))")
    }

    /// Checks that a page may replace the file in its place.
    private func check(_ path: String, overwrites: Bool) async throws {
        let chain = try await BatchChain.read(id, queue: queue)
        try ReplacedFile.refuse(path, over: BatchOutput.lists(of: chain))
        guard !overwrites, let file = ReplacedFile(path) else { return }
        guard HTMLPage.isPage(file.head(4096), titled: BatchPage.title(of: id)) else {
            throw file.refusal("a report of this batch")
        }
    }

    private func page() async throws -> BatchPage {
        guard let snapshot = try await queue.views.snapshot(of: id) else {
            throw PrefetchError(.notFound, "there is no batch '\(id)'", hint: "see them all: prefetch-coord status")
        }
        var page = BatchPage(snapshot: snapshot)
        page.names = try await queue.workerRecords.all().filter { snapshot.counts[$0.id] != nil }
            .compactMap(\.report.names).reduce(NameReport(), +)
        page.failures = try await failures(snapshot.status)
        return page
    }

    private func failures(_ status: BatchStatus) async throws -> [FailureDetail] {
        var failures: [FailureDetail] = []
        do throws(PrefetchError) {
            try await FailureReader(queue: queue, status: status).forEach { failure in
                failures.append(failure)
                return failures.count < BatchPage.maxFailures
            }
        } catch {
            guard error.kind == .notFound || error.kind == .unreadableList else { throw error }
            // Some skipped URLs have only an outcome, and the list is gone: show those with details.
            failures = try await queue.results.someFailures(of: id, most: BatchPage.maxFailures)
                .sorted { $0.key < $1.key }.map(\.value)
        }
        return failures
    }
}
