/// Counts answers and failures of transfers by host between two samples. Empty until the first sample is taken. Used only on the
/// downloader's thread.
final class TransferTally {
    private struct Failure: Hashable {
        var host: ByteText
        var kind: TransferSample.HostFailure.Kind
    }

    private var answered = 0
    private var answers: [ByteText: Int] = [:]
    private var failures: [Failure: (count: Int, isKnown: Bool)] = [:]
    /// Hosts that have answered, and those that have failed before they ever did.
    private var known: Set<ByteText> = [], failedBefore: Set<ByteText> = []
    /// Time of the last sample; nil: none is wanted yet.
    private(set) var sampledAt: Double?
    /// Bytes of the ended transfers.
    private var endedBytes = 0
    /// All bytes as of the last sample.
    private var sampledBytes = 0

    /// Seconds after which a connect is late: its first packet was lost, and is sent again (RFC 6298).
    private static let late = 1.0
    /// The most hosts with failures in a sample, and the most that are remembered.
    private static let (mostFailures, mostRemembered) = (256, 16_384)

    func didAnswer(_ host: String) {
        guard sampledAt != nil else { return }
        answered += 1
        if let count = answers[host] {
            answers[host] = count + 1
        } else {
            answers[host] = 1
            Self.insert(host, into: &known)
        }
    }

    func didFail(_ host: String, _ kind: TransferSample.HostFailure.Kind) {
        guard sampledAt != nil, failures.count < Self.mostFailures else { return }
        let isKnown = known.contains(host)
        guard isKnown || Self.insert(host, into: &failedBefore) else { return }
        failures[Failure(host: ByteText(host), kind: kind), default: (0, isKnown)].count += 1
    }

    /// Counts a transfer that has ended.
    func count(_ operation: DownloadOperation, _ error: WebImageError?) {
        guard sampledAt != nil else { return }
        let (progress, host) = (operation.progress, operation.request.origin)
        endedBytes += progress.bytes
        if let error, let kind = TransferSample.HostFailure.Kind(error, requestWasSent: progress.requestWasSent) {
            didFail(host, kind)
        } else if error == nil || error?.httpStatus != nil {
            didAnswer(host)
        }
    }

    @discardableResult
    private static func insert(_ host: String, into hosts: inout Set<ByteText>) -> Bool {
        if hosts.count >= mostRemembered { hosts.removeAll(keepingCapacity: true) }
        return hosts.insert(host).inserted
    }

    /// The sample since the last one, with the connects that became late in it.
    /// * `sockets`: connections, those included that are being made.
    func sample(running: Int, of operations: [DownloadOperation], sockets: Int, now: Double) -> TransferSample {
        var (bytes, connecting) = (0, 0)
        for operation in operations {
            let progress = operation.progress
            bytes += progress.bytes
            guard let sampledAt, !progress.requestWasSent else { continue }
            connecting += 1
            let late = progress.hopStart + min(Self.late, operation.profile.configuration.connectTimeout / 2)
            if late > sampledAt, late <= now { didFail(operation.request.origin, .connect) }
        }
        var sample = sample(running: running, runningBytes: bytes, now: now)
        sample.connections = max(0, sockets - connecting)
        return sample
    }

    /// The sample since the last one, whose successor begins now.
    /// * `running`: transfers that hold a slot.
    /// * `runningBytes`: bytes that the running transfers, stalled ones included, have received.
    func sample(running: Int, runningBytes: Int, now: Double) -> TransferSample {
        var sample = TransferSample(seconds: sampledAt.map { now - $0 } ?? 0)
        let bytes = endedBytes + runningBytes
        sample.bytes = max(0, bytes - sampledBytes)
        (sample.answered, sample.running) = (answered, running)
        sample.hosts = answers.count
        sample.failures = failures.map { failure, known in
            TransferSample.HostFailure(
                failure.kind, of: failure.host.text, count: known.count, isKnown: known.isKnown,
                answers: answers[failure.host] ?? 0)
        }
        (sampledAt, sampledBytes, answered) = (now, bytes, 0)
        answers.removeAll(keepingCapacity: answers.count < Self.mostFailures)
        failures.removeAll()
        return sample
    }
}
