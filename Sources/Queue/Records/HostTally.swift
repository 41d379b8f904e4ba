internal import Glibc

/// A worker's requests to hosts since its last report, by batch: URLs that were transferred or skipped after a request, their HTTP
/// statuses, figures of images and transfers, and what held the worker back meanwhile. URLs without a request, hits above all, are not in
/// it and cost nothing.
package struct HostTally: Sendable {
    private struct Host {
        var finished = 0, skipped = 0, bytes = 0

        mutating func add(_ other: Host) {
            finished += other.finished
            skipped += other.skipped
            bytes += other.bytes
        }
    }

    private struct Batch {
        var statuses: [Int: Int] = [:]
        var hosts: [String: Host] = [:]
        var fetches = FetchTally()
        var limits = LimitTimes()
    }

    /// The most hosts per batch that are reported at a time, and that are kept until then.
    static let (maxReported, maxKept) = (32, 1_024)

    private var batches: [String: Batch] = [:]

    package init() {}

    package var isEmpty: Bool { batches.isEmpty }

    /// Whether the outcome involved a request to a host.
    package static func counts(_ outcome: PrefetchOutcome) -> Bool {
        switch outcome {
        case .hit, .blacklisted, .invalidURL, .cancelled, .notCached: false
        default: true
        }
    }

    /// Adds URLs of a job that a report was first to settle.
    package mutating func add(_ settled: [SettledEntry], of job: PrefetchJob) {
        // Most reports have only hits.
        guard settled.contains(where: { Self.counts($0.outcome) }) else { return }
        var batch = batches.removeValue(forKey: job.batch) ?? Batch()
        // Lists often have many URLs of one site in a row: consecutive ones are added together.
        var (run, site): (Host, String) = (Host(), "")
        func close() {
            guard run.finished > 0, let name = Self.host(of: site),
                batch.hosts[name] != nil || batch.hosts.count < Self.maxKept
            else { return }
            batch.hosts[name, default: Host()].add(run)
        }
        for item in settled where Self.counts(item.outcome) && item.position < job.entries.count {
            if item.outcome == .httpError, let status = item.failure?.httpStatus, (100..<600).contains(status) {
                batch.statuses[status, default: 0] += 1
            }
            if let fetch = item.fetch { batch.fetches.add(fetch, outcome: item.outcome, bytes: item.bytes) }
            let url = job.entries[item.position].url
            if site.utf8.last != UInt8(ascii: "/") || !Self.starts(url, with: site) {
                close()
                (run, site) = (Host(), Self.site(of: url))
            }
            run.add(Host(finished: 1, skipped: item.outcome.isSkipped ? 1 : 0, bytes: item.bytes))
        }
        close()
        batches[job.batch] = batch
    }

    /// Adds the time in which a cause held back the worker that had URLs of these batches.
    package mutating func add(_ cause: LimitCause, milliseconds: Int, of ids: some Sequence<String>) {
        guard milliseconds > 0 else { return }
        for id in ids { batches[id, default: Batch()].limits.add(cause, milliseconds: milliseconds) }
    }

    private static func starts(_ url: String, with site: String) -> Bool {
        let (url, site) = (url.utf8.span, site.utf8.span)
        guard url.count >= site.count else { return false }
        return url.withUnsafeBytes { url in
            // Neither is empty.
            site.withUnsafeBytes { site in memcmp(url.baseAddress!, site.baseAddress!, site.count) == 0 }
        }
    }

    /// A URL up to and including the `/` after its authority; the whole URL if there is none.
    private static func site(of url: String) -> String {
        let bytes = url.utf8
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else { return url }
        let path = bytes[colon...].dropFirst(3)
        guard let slash = path.firstIndex(of: UInt8(ascii: "/")) else { return url }
        return String(url[...slash])
    }

    /// For each batch its lines: `404 3` for statuses, `t27 3` for ``FetchTally``, `m9 1000` for ``LimitTimes``, and
    /// `host finished skipped bytes` for the largest hosts.
    var encoded: [(batch: String, lines: String)] {
        batches.sorted { $0.key < $1.key }.map { id, batch in
            var text = ""
            for (status, count) in batch.statuses.sorted(by: { $0.key < $1.key }) { text += "\(status) \(count)\n" }
            for (name, value) in batch.fetches.fields + batch.limits.fields { text += "\(name) \(value)\n" }
            let biggest = batch.hosts.sorted { ($0.value.finished, $1.key) > ($1.value.finished, $0.key) }
            for (name, host) in biggest.prefix(Self.maxReported) {
                text += "\(name) \(host.finished) \(host.skipped) \(host.bytes)\n"
            }
            return (id, text)
        }
    }

    /// Host and port of a URL in lower case; nil without a host, or if it is not plain ASCII.
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
