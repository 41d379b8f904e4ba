/// The throughput of the samples of a time, with the error of its mean.
struct ThroughputWindow {
    private struct Entry {
        var seconds: Double, answers: Double, bytes: Double
        var isBound: Bool
    }

    private var entries: [Entry] = []
    private(set) var seconds = 0.0
    /// The most transfers that ran in it.
    private(set) var busiest = 0
    /// The most seconds it covers: older samples are dropped.
    private let most: Double

    init(most: Double) { self.most = most }

    var count: Int { entries.count }

    /// * `isBound`: whether the limit was what held transfers.
    mutating func add(_ sample: TransferSample, isBound: Bool) {
        entries.append(
            Entry(
                seconds: sample.seconds, answers: Double(sample.answered), bytes: Double(sample.bytes),
                isBound: isBound))
        seconds += sample.seconds
        busiest = max(busiest, sample.running)
        while seconds > most, entries.count > 1 { seconds -= entries.removeFirst().seconds }
    }

    /// Whether the limit held transfers in most of it.
    var isBound: Bool { 2 * entries.count(where: \.isBound) > entries.count }

    /// Answers a second.
    var answerRate: Double { seconds > 0 ? entries.reduce(0) { $0 + $1.answers } / seconds : 0 }

    /// Work a second with its standard error: the mean of answers, and of bytes in units of a usual body. Either alone misleads: few
    /// large bodies end in a second, and one of them outweighs a thousand small ones.
    /// * `body`: bytes of a usual body; 0: only answers count.
    /// * `last`: only the last samples of so many seconds.
    func rate(body: Double, last: Double = .infinity) -> (mean: Double, error: Double) {
        var rates: [Double] = []
        var covered = 0.0
        for entry in entries.reversed() {
            guard covered < last else { break }
            covered += entry.seconds
            let work = body > 0 ? (entry.answers + entry.bytes / body) / 2 : entry.answers
            rates.append(work / entry.seconds)
        }
        guard !rates.isEmpty else { return (0, .infinity) }
        let mean = rates.reduce(0, +) / Double(rates.count)
        guard rates.count > 2 else { return (mean, .infinity) }
        let variance = rates.reduce(0) { $0 + ($1 - mean) * ($1 - mean) } / Double(rates.count - 1)
        return (mean, (variance / Double(rates.count)).squareRoot())
    }
}
