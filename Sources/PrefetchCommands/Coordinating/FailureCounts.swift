internal import ArgumentParser
internal import Prefetch
internal import PrefetchModel
internal import WebImage

/// Skipped URLs counted by what they have in common, in bounded memory.
struct FailureCounts {
    enum Category: String, CaseIterable, ExpressibleByArgument {
        case cause, host
    }

    /// Hosts that are counted by name.
    static let maxHosts = 100_000

    private struct Group: Hashable {
        var name: String
        var status: Int?
    }

    let category: Category
    private var counts: [Group: Int] = [:]
    private var total = 0
    private var others = 0
    private var withoutDetail = 0

    init(by category: Category) { self.category = category }

    mutating func note(_ failure: FailureDetail) {
        total += 1
        if failure.detail == FailureReader.noDetail { withoutDetail += 1 }
        let group =
            switch category {
            case .cause:
                Group(
                    name: failure.outcome.name, status: failure.outcome == .httpError ? failure.httpStatus : nil)
            case .host: Group(name: (try? RequestURL(failure.url))?.host ?? "", status: nil)
            }
        if counts[group] != nil || counts.count < Self.maxHosts {
            counts[group, default: 0] += 1
        } else {
            others += 1
        }
    }

    private var sorted: [(group: Group, count: Int)] {
        counts.map { ($0.key, $0.value) }
            .sorted { ($1.1, $0.0.name, $0.0.status ?? 0) < ($0.1, $1.0.name, $1.0.status ?? 0) }
    }

    /// For people: number, share, name.
    var lines: [String] {
        var rows = sorted.map { group, count in
            let name = group.name.isEmpty ? "(no host: invalid URL)" : TerminalText.escaped(group.name)
            return (count, name + (group.status.map { " \($0)" } ?? ""))
        }
        if others > 0 { rows.append((others, "(other hosts)")) }
        let width = rows.map { Wording.count($0.0).count }.max() ?? 0
        func padded(_ text: String, _ width: Int) -> String {
            String(repeating: " ", count: max(0, width - text.count)) + text
        }
        return rows.map { count, name in
            "\(padded(Wording.count(count), width))  \(padded(Wording.share(count, of: total), 6))  \(name)"
        }
    }

    /// What the counts do not show; nil if there is nothing.
    var note: String? {
        withoutDetail == 0
            ? nil
            : "note: \(Wording.count(withoutDetail)) of \(Wording.count(total)) have no detail (--keep-details bounds them)"
    }

    func json(batch: String) -> JSONText {
        func share(_ count: Int) -> JSONText { .number(Double(count) / Double(max(1, total)), digits: 4) }
        return .object([
            ("v", .int(1)), ("batch", .string(batch)), ("by", .string(category.rawValue)), ("skipped", .int(total)),
            ("without_detail", .int(withoutDetail)), ("others", .int(others)),
            (
                "counts",
                .array(
                    sorted.map { group, count in
                        let name: [(String, JSONText)] =
                            category == .host
                            ? [("host", group.name.isEmpty ? .null : .string(group.name))]
                            : [
                                ("cause", .string(group.name)),
                                ("http_status", group.status.map { .int($0) } ?? .null),
                            ]
                        return .object(name + [("count", .int(count)), ("share", share(count))])
                    })
            ),
        ])
    }
}
