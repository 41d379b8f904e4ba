internal import Prefetch
internal import WebImage

/// What the images of a batch were like and how long they took, for people.
enum FetchText {
    /// The shares of transfers that are told.
    static let quantiles: [(name: String, share: Double)] = [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)]

    /// `p50 118 ms  p95 1.84 s  p99 6.20 s`; nil where there was no transfer.
    static func latency(_ durations: DurationHistogram) -> String? {
        let parts = quantiles.compactMap { name, share in
            durations.quantile(share).map { "\(name) \(Wording.latency($0))" }
        }
        return parts.isEmpty ? nil : parts.joined(separator: "  ")
    }

    /// Images of each size, the smallest first.
    static func sizes(_ fetches: FetchTally) -> [(name: String, count: Int)] {
        Array(zip(["<10K", "10-50K", "50-200K", "0.2-1M", "1-5M", ">5M"], fetches.sizes))
    }

    /// Images of each format, the most frequent first.
    static func formats(_ fetches: FetchTally) -> [(name: String, count: Int)] {
        fetches.formats.map { (name: $0.key.rawValue, count: $0.value) }
            .sorted { ($1.count, $0.name) < ($0.count, $1.name) }
    }

    /// The name of a step of a transfer.
    static func name(_ stage: FetchTally.Stage) -> String {
        switch stage {
        case .nameLookup: "dns"
        case .connect: "connect"
        case .tls: "tls"
        case .firstByte: "ttfb"
        case .rest: "body"
        }
    }
}

extension Wording {
    /// 0.84 ms, 118 ms, 1.84 s, 12.3 s: three digits.
    static func latency(_ seconds: Double) -> String {
        let milliseconds = seconds * 1000
        if milliseconds < 999.5 { return "\(threeDigits(milliseconds)) ms" }
        return seconds < 59.95 ? "\(threeDigits(seconds)) s" : Self.seconds(seconds)
    }

    private static func threeDigits(_ value: Double) -> String {
        decimal(value, digits: value < 9.995 ? 2 : value < 99.95 ? 1 : 0)
    }
}
