internal import Prefetch
internal import WebImage

// Who ended the URLs of a batch, and why: lists that each add up to its counts, since all of them are of one moment.
extension BatchSnapshot {
    /// A part without a worker has the URLs that a cancel ended, or a check of the cache while the list was queued.
    var workerParts: [WorkerPart] {
        var rest = Host(status.counts)
        let parts = counts.map { WorkerPart(worker: $0.key, counts: $0.value) }.sorted {
            $0.worker ?? "" < $1.worker ?? ""
        }
        for part in parts { rest -= Host(part.counts) }
        guard rest.finished != 0 else { return parts }
        var others = PrefetchCounts()
        (others[.cancelled], others[.hit], others.bytes) = (rest.skipped, rest.finished - rest.skipped, rest.bytes)
        return parts + [WorkerPart(worker: nil, counts: others)]
    }

    /// The hosts with most URLs first. The part without a name has hosts that are not counted one by one, those of the last second, and URLs without
    /// a request.
    var hostParts: [HostPart] {
        var rest = Host(status.counts)
        let parts = hosts.sorted { ($1.value.finished, $0.key) < ($0.value.finished, $1.key) }
            .map { HostPart(host: $0.key, sum: $0.value) }
        for part in parts { rest -= part.sum }
        return rest.finished == 0 ? parts : parts + [HostPart(host: nil, sum: rest)]
    }

    /// Causes of URLs without an image, `httpError` by status, the most frequent first; they add up to the skipped.
    var causes: [NamedPart] {
        let skipped = status.counts.skipped
        var causes: [NamedPart] = []
        for outcome in PrefetchOutcome.allCases where outcome.isSkipped && status.counts[outcome] > 0 {
            var rest = status.counts[outcome]
            for (status, count) in httpStatuses.sorted(by: { $0.key < $1.key }) where outcome == .httpError {
                // Statuses are reported a second late and separately: limited to the count.
                let part = max(0, min(rest, count))
                rest -= part
                if part > 0 { causes.append(NamedPart("\(outcome.name) \(status)", part, of: skipped)) }
            }
            if rest > 0 { causes.append(NamedPart(outcome.name, rest, of: skipped)) }
        }
        return causes.sorted { ($0.count, $1.name) > ($1.count, $0.name) }
    }
}

struct WorkerPart: Record {
    var worker: String?
    var counts: PrefetchCounts

    static let fields: [Field<WorkerPart>] = [
        Field("worker", "worker", \.worker), Field("finished", "finished", \.counts.finished),
        .column("downloaded", \.counts[.downloaded]), .column("hit", \.counts[.hit]),
        Field("skipped", "skipped", \.counts.skipped), Field("bytes", "received") { Bytes($0.counts.bytes) },
    ]
}

struct HostPart: Record {
    var host: String?
    var sum: BatchSnapshot.Host

    static let fields: [Field<HostPart>] = [
        Field("host", "host", \.host), Field("finished", "finished", \.sum.finished),
        Field("skipped", "skipped", \.sum.skipped),
        .column("share") { Share(part: $0.sum.skipped, whole: $0.sum.finished) },
        Field("bytes", "received") { Bytes($0.sum.bytes) },
    ]
}

/// A part of a whole with a name: a cause, a format.
struct NamedPart: Record, Equatable {
    var name: String
    var count: Int
    var whole: Int

    init(_ name: String, _ count: Int, of whole: Int) { (self.name, self.count, self.whole) = (name, count, whole) }

    static let fields: [Field<NamedPart>] = [
        .column("what", \.name), .column("number", \.count),
        .column("share") { Share(part: $0.count, whole: $0.whole) },
    ]
}

extension BatchSnapshot.Host {
    fileprivate init(_ counts: PrefetchCounts) {
        self.init(finished: counts.finished, skipped: counts.skipped, bytes: counts.bytes)
    }

    fileprivate static func -= (whole: inout Self, part: Self) {
        whole.finished -= part.finished
        whole.skipped -= part.skipped
        whole.bytes -= part.bytes
    }
}
