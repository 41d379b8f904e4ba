internal import ArgumentParser
internal import Prefetch
internal import PrefetchModel
internal import WebImage

/// Skipped URLs counted by what they have in common, in bounded memory, each cause with its remedy.
struct FailureCounts {
    enum Category: String, CaseIterable, ExpressibleByArgument {
        case cause, host
    }

    /// Hosts that are counted by name.
    static let maxHosts = 100_000

    /// An outcome, and what tells apart those that need other remedies.
    private struct Cause: Hashable {
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

    private struct Group {
        /// The host; nil if they are counted by cause.
        var host: String?
        var causes: [Cause: Int]

        var count: Int { causes.values.reduce(0, +) }
        /// The most frequent one.
        var cause: Cause? { causes.max { ($0.value, $1.key.order) < ($1.value, $0.key.order) }?.key }
    }

    let category: Category
    private var causes: [Cause: Int] = [:]
    private var hosts: [ByteText: [Cause: Int]] = [:]
    private var total = 0
    private var others = 0
    private var withoutDetail = 0

    init(by category: Category) { self.category = category }

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
                .map { Group(host: nil, causes: [$0.key: $0.value]) }
        case .host:
            hosts.map { Group(host: $0.key.text, causes: $0.value) }
                .sorted { ($1.count, $0.host ?? "") < ($0.count, $1.host ?? "") }
        }
    }

    /// For people: number, share, name; with the remedy of each cause, once.
    var lines: [String] {
        let groups = groups
        var rows = groups.map { group in (group.count, name(of: group)) }
        if others > 0 { rows.append((others, "(other hosts)")) }
        let width = rows.map { Wording.count($0.0).count }.max() ?? 0
        func padded(_ text: String, _ width: Int) -> String {
            String(repeating: " ", count: max(0, width - text.count)) + text
        }
        return rows.map { count, name in
            "\(padded(Wording.count(count), width))  \(padded(Wording.share(count, of: total), 6))  \(name)"
        } + (category == .host ? remedies(of: groups) : [])
    }

    private func name(of group: Group) -> String {
        let cause = group.cause
        guard let host = group.host else { return cause.map(Self.line) ?? "" }
        let name = host.isEmpty ? "(no host: invalid URL)" : TerminalText.escaped(host)
        return name + (cause.map { "  \($0.text)" } ?? "")
    }

    /// Beside a table of hosts, which name their most frequent cause only.
    private func remedies(of groups: [Group]) -> [String] {
        var seen: Set<Cause> = []
        return groups.compactMap(\.cause).filter { $0.remedy != nil && seen.insert($0).inserted }.map(Self.line)
    }

    private static func line(_ cause: Cause) -> String {
        cause.text + (cause.remedy.map { " -> \($0)" } ?? cause.reason.map { " (\($0.rawValue))" } ?? "")
    }

    /// What the counts do not show; nil if there is nothing.
    var note: String? {
        withoutDetail == 0
            ? nil
            : "note: \(Wording.count(withoutDetail)) of \(Wording.count(total)) have no detail: a batch keeps those of 100,000"
    }

    func json(batch: String) -> JSONText {
        func share(_ count: Int) -> JSONText { .number(Double(count) / Double(max(1, total)), digits: 4) }
        return .object([
            ("v", .int(1)), ("batch", .string(batch)), ("by", .string(category.rawValue)), ("skipped", .int(total)),
            ("without_detail", .int(withoutDetail)), ("others", .int(others)),
            (
                "counts",
                .array(
                    groups.map { group in
                        let host: [(String, JSONText)] =
                            group.host.map { [("host", $0.isEmpty ? .null : .string($0))] } ?? []
                        return .object(
                            host + [
                                ("cause", group.cause.map { .string($0.outcome) } ?? .null),
                                ("reason", group.cause?.reason.map { .string($0.rawValue) } ?? .null),
                                ("http_status", group.cause?.status.map { .int($0) } ?? .null),
                                ("remedy", group.cause?.remedy.map { .string($0) } ?? .null),
                                ("count", .int(group.count)), ("share", share(group.count)),
                            ])
                    })
            ),
        ])
    }
}
