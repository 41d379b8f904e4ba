internal import ArgumentParser
internal import Prefetch
internal import PrefetchModel
internal import WebImage

/// Skipped URLs counted by what they have in common, in bounded memory, each cause with its remedy.
struct FailureCounts {
    enum Category: String, CaseIterable, ExpressibleByArgument, ShownName {
        case cause, host
    }

    /// Hosts that are counted by name.
    static let maxHosts = 100_000

    /// An outcome, with the reason or status that determines the remedy.
    fileprivate struct Cause: Hashable {
        var outcome: String
        var status: Int?
        var reason: FailureReason?
        var remedy: String?

        init(_ failure: FailureDetail) {
            outcome = failure.outcome.name
            status = failure.outcome == .httpError ? failure.httpStatus : nil
            reason = failure.reason
            remedy = FailureRemedy.text(failure.outcome, failure.reason, httpStatus: failure.httpStatus)
        }

        var text: String { TerminalText.escaped(outcome) + (status.map { " \($0)" } ?? "") }

        /// Order among those with the same count.
        var order: String { "\(outcome) \(1000 + (status ?? 0)) \(reason?.rawValue ?? "")" }
    }

    fileprivate struct Group: Record {
        /// The host; nil if they are counted by cause.
        var host: String?
        var causes: [Cause: Int]
        var total: Int

        var count: Int { causes.values.reduce(0, +) }
        /// The most frequent one.
        var cause: Cause? { causes.max { ($0.value, $1.key.order) < ($1.value, $0.key.order) }?.key }

        static let fields: [Field<Group>] = [
            .column("URLs", \.count), .column("share", \.share),
            .column("host") { group in group.host.map { $0.isEmpty ? "(no host: invalid URL)" : $0 } },
            .column("cause", \.cause?.text),
            // Beside hosts, which name their most frequent cause only, it stands once below.
            .column("what helps") { $0.host == nil ? $0.cause?.remedy ?? $0.cause?.reason?.rawValue : nil },
            .ifKnown("host", { $0.host.map(\.unlessEmpty) }),
            Field("cause") { $0.cause.flatMap { PrefetchOutcome(name: $0.outcome) }.map { SkippedOutcome($0) } },
            Field("reason", \.cause?.reason), Field("http_status", \.cause?.status),
            Field("remedy", about: "What helps.", \.cause?.remedy), Field("count", \.count), Field("share", \.share),
        ]

        private var share: Share { Share(part: count, whole: total) }
    }

    let category: Category
    private let batch: String
    private var causes: [Cause: Int] = [:]
    private var hosts: [ByteText: [Cause: Int]] = [:]
    private var total = 0
    private var others = 0
    private var withoutDetail = 0

    init(by category: Category, of batch: String) { (self.category, self.batch) = (category, batch) }

    mutating func note(_ failure: FailureDetail) {
        total += 1
        if !failure.isKept { withoutDetail += 1 }
        let cause = Cause(failure)
        guard category == .host else { return causes[cause, default: 0] += 1 }
        let host = (try? RequestURL(failure.url))?.host ?? ""
        if hosts[host] != nil || hosts.count < Self.maxHosts {
            hosts[host, default: [:]][cause, default: 0] += 1
        } else {
            others += 1
        }
    }

    /// Largest first.
    private var groups: [Group] {
        switch category {
        case .cause:
            causes.sorted { ($1.value, $0.key.order) < ($0.value, $1.key.order) }
                .map { Group(host: nil, causes: [$0.key: $0.value], total: total) }
        case .host:
            hosts.map { Group(host: $0.key.text, causes: $0.value, total: total) }
                .sorted { ($1.count, $0.host ?? "") < ($0.count, $1.host ?? "") }
        }
    }

    /// Number, share and name of each; then what helps against the causes of hosts, each once.
    var sheet: Sheet {
        let groups = groups
        var sheet = Sheet(self)
        sheet.add(table: groups)
        if others > 0 { sheet.add("and \(Wording.count(others, "URL")) of other hosts") }
        var seen: Set<Cause> = []
        if category == .host {
            sheet.add(
                groups.compactMap(\.cause).filter { seen.insert($0).inserted }.compactMap { cause in
                    cause.remedy.map { "\(cause.text): \($0)" }
                })
        }
        if withoutDetail > 0 {
            sheet.notes.append(
                "note: \(Wording.count(withoutDetail)) of \(Wording.count(total)) have no detail: a batch keeps those of 100,000"
            )
        }
        return sheet
    }
}

extension FailureCounts: Record {
    static let fields: [Field<Self>] = [
        .version, Field("batch", \.batch), Field("by", \.category), Field("skipped", \.total),
        Field("without_detail", \.withoutDetail),
        Field("others", about: "Of hosts behind the first 100,000.", \.others),
        Field("counts", \.groups),
    ]
}
