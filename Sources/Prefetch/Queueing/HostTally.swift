package import WebImage

/// What a worker has asked of hosts since it last said so, batch by batch: URLs that were transferred or were skipped after a request, and
/// which HTTP statuses they were skipped with. What asked nobody, a hit above all, is not in it and costs nothing.
package struct HostTally: Sendable {
    /// What one host came to.
    private struct Host {
        var finished = 0, skipped = 0, bytes = 0
    }

    private struct Batch {
        var statuses: [Int: Int] = [:]
        var hosts: [String: Host] = [:]
    }

    /// The most hosts of a batch that are told at a time, and that are kept until then.
    static let (mostTold, mostKept) = (32, 1_024)

    private var batches: [String: Batch] = [:]

    /// Nothing.
    package init() {}

    /// Whether there is nothing to tell.
    package var isEmpty: Bool { batches.isEmpty }

    /// Whether an outcome is one of a host: something was asked of it.
    package static func counts(_ outcome: PrefetchOutcome) -> Bool {
        switch outcome {
        case .hit, .blacklisted, .invalidURL, .cancelled, .notCached: false
        default: true
        }
    }

    /// Adds URLs of a job that a report was first to settle.
    ///
    /// * `settled`: what was reported, these among it.
    mutating func add(
        _ first: [(position: Int, outcome: PrefetchOutcome)], of job: PrefetchJob, _ settled: [PrefetchQueue.Settled]
    ) {
        // Most reports have hits alone.
        guard first.contains(where: { Self.counts($0.outcome) }) else { return }
        let items = Dictionary(settled.map { ($0.position, $0) }) { a, _ in a }
        var batch = batches.removeValue(forKey: job.batch) ?? Batch()
        for (position, outcome) in first where Self.counts(outcome) {
            if outcome == .httpError, let status = items[position]?.failure?.httpStatus, (100..<600).contains(status) {
                batch.statuses[status, default: 0] += 1
            }
            guard position < job.entries.count, let name = Self.host(of: job.entries[position].url),
                batch.hosts[name] != nil || batch.hosts.count < Self.mostKept
            else { continue }
            var host = batch.hosts[name] ?? Host()
            host.finished += 1
            if outcome.isSkipped { host.skipped += 1 }
            host.bytes += items[position]?.bytes ?? 0
            batch.hosts[name] = host
        }
        batches[job.batch] = batch
    }

    /// A batch and its lines, `404 3` for statuses and `host finished skipped bytes` for the hosts with most URLs, for each batch.
    var encoded: [(batch: String, lines: String)] {
        batches.sorted { $0.key < $1.key }.map { id, batch in
            var text = ""
            for (status, count) in batch.statuses.sorted(by: { $0.key < $1.key }) { text += "\(status) \(count)\n" }
            let biggest = batch.hosts.sorted { ($0.value.finished, $1.key) > ($1.value.finished, $0.key) }
            for (name, host) in biggest.prefix(Self.mostTold) {
                text += "\(name) \(host.finished) \(host.skipped) \(host.bytes)\n"
            }
            return (id, text)
        }
    }

    /// Host and port of a URL in small letters; nil where there is none, or none that is plain ASCII.
    static func host(of url: String) -> String? {
        let bytes = Array(url.utf8)
        guard let scheme = bytes.firstIndex(of: UInt8(ascii: ":")), bytes[scheme...].starts(with: "://".utf8) else {
            return nil
        }
        var authority = bytes[(scheme + 3)...].prefix {
            $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#")
        }
        if let at = authority.lastIndex(of: UInt8(ascii: "@")) { authority = authority[(at + 1)...] }
        guard (1...260).contains(authority.count), authority.allSatisfy({ (0x21..<0x7F).contains($0) }) else {
            return nil
        }
        return String(decoding: authority.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
    }
}
