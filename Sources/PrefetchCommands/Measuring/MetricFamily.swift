/// A metric with all its samples, in the model that Prometheus and OpenMetrics share.
struct MetricFamily: Sendable {
    enum Kind: Sendable {
        case counter, gauge
        /// Always 1: the information is in the labels.
        case info
        /// Cumulative counts by upper bounds, their sum and their number.
        case histogram
    }

    /// The name of the samples: a counter's ends with `_total`, that of an info with `_info`.
    var name: String
    var kind: Kind
    var help: String
    var samples: [(suffix: String, labels: [(name: String, value: String)], value: Double)]

    /// * `name`: its end says the kind, unless that is a histogram.
    init(_ name: String, _ help: String) {
        (self.name, self.help, samples) = (name, help, [])
        kind = name.hasSuffix("_total") ? .counter : name.hasSuffix("_info") ? .info : .gauge
    }

    /// With one sample without labels, if there is a value.
    init(_ name: String, _ help: String, _ value: Int?) {
        self.init(name, help)
        if let value { add(Double(value)) }
    }

    mutating func add(_ value: Int, _ labels: (String, String)...) {
        samples.append(("", labels.map { (name: $0.0, value: $0.1) }, Double(value)))
    }

    mutating func add(_ value: Double, _ labels: (String, String)...) {
        samples.append(("", labels.map { (name: $0.0, value: $0.1) }, value))
    }

    /// Adds the samples of a histogram.
    /// * `buckets`: ascending upper bounds with cumulative counts.
    mutating func add(
        buckets: [(bound: Double, count: Int)], total: Int, sum: Double, _ labels: (String, String)...
    ) {
        let labels = labels.map { (name: $0.0, value: $0.1) }
        for (bound, count) in buckets {
            samples.append(("_bucket", labels + [(name: "le", value: "\(bound)")], Double(count)))
        }
        samples.append(("_bucket", labels + [(name: "le", value: "+Inf")], Double(total)))
        samples.append(("_sum", labels, sum))
        samples.append(("_count", labels, Double(total)))
    }
}

enum MetricFormat: String, CaseIterable, Sendable {
    /// Prometheus' text format 0.0.4, which the textfile collector of its node exporter reads too.
    case prometheus
    case openmetrics

    var contentType: String {
        switch self {
        case .prometheus: "text/plain; version=0.0.4; charset=utf-8"
        case .openmetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8"
        }
    }

    /// The format for an Accept header: OpenMetrics if it is named and not refused.
    init(accept: String) {
        let wants = accept.lowercased().split(separator: ",").contains { part in
            let words = part.split(separator: ";").map { $0.filter { $0 != " " } }
            return words.first == "application/openmetrics-text" && !words.contains("q=0") && !words.contains("q=0.0")
        }
        self = wants ? .openmetrics : .prometheus
    }

    /// The text of these families. Each sample has its queue as a label: one Prometheus may scrape several.
    func text(_ families: [MetricFamily], queue: String) -> String {
        var out = ""
        for family in families where !family.samples.isEmpty {
            let name = self == .openmetrics ? Self.stem(family) : family.name
            out += "# HELP \(name) \(Self.escaped(family.help, quotes: self == .openmetrics))\n"
            out += "# TYPE \(name) \(type(family.kind))\n"
            if self == .openmetrics, let unit = ["bytes", "seconds"].first(where: { name.hasSuffix("_\($0)") }) {
                out += "# UNIT \(name) \(unit)\n"
            }
            for sample in family.samples {
                let labels = ([(name: "queue", value: queue)] + sample.labels)
                    .map { "\($0.name)=\"\(Self.escaped($0.value, quotes: true))\"" }
                out += "\(family.name)\(sample.suffix){\(labels.joined(separator: ","))} \(Self.number(sample.value))\n"
            }
        }
        return out + (self == .openmetrics ? "# EOF\n" : "")
    }

    private func type(_ kind: MetricFamily.Kind) -> String {
        switch kind {
        case .counter: "counter"
        case .gauge: "gauge"
        case .histogram: "histogram"
        case .info: self == .openmetrics ? "info" : "gauge"
        }
    }

    /// OpenMetrics names a family without the suffix of its samples.
    private static func stem(_ family: MetricFamily) -> String {
        switch family.kind {
        case .counter: String(family.name.dropLast("_total".count))
        case .info: String(family.name.dropLast("_info".count))
        case .gauge, .histogram: family.name
        }
    }

    /// Escapes for the format, and first for terminals: names of batches and workers come from Redis.
    private static func escaped(_ text: String, quotes: Bool) -> String {
        let text = TerminalText.escaped(text).replacing("\\", with: "\\\\").replacing("\n", with: "\\n")
        return quotes ? text.replacing("\"", with: "\\\"") : text
    }

    private static func number(_ value: Double) -> String {
        abs(value) < 9e15 && value == value.rounded() ? String(Int(value)) : String(value)
    }
}
