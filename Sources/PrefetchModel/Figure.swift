/// A number of a record: its name in Redis and in JSON, its unit, what it means, and how the numbers of several records are joined. What
/// writes, reads, joins or shows the number is made from its row, as are the rows of `docs/METRICS.md` and `docs/schema.json`.
package struct Figure<Root>: Sendable {
    package let about: FigureDescription
    /// Nil if it was not reported.
    package let value: @Sendable (Root) -> Int?
    package let set: @Sendable (inout Root, Int) -> Void

    package var name: String { about.name }

    private init(
        _ about: FigureDescription, _ value: @escaping @Sendable (Root) -> Int?,
        _ set: @escaping @Sendable (inout Root, Int) -> Void
    ) {
        (self.about, self.value, self.set) = (about, value, set)
    }

    /// A number that is 0 if it was not reported.
    package init(
        _ name: String, _ path: any WritableKeyPath<Root, Int> & Sendable, unit: FigureDescription.Unit = .count,
        join: FigureDescription.Join = .sum, place: FigureDescription.Place = .record, _ help: String
    ) {
        self.init(FigureDescription(name, unit, join, place, help), { $0[keyPath: path] }) { $0[keyPath: path] = $1 }
    }

    /// A number that is unknown if it was not reported.
    package init(
        _ name: String, _ path: any WritableKeyPath<Root, Int?> & Sendable, unit: FigureDescription.Unit = .count,
        join: FigureDescription.Join = .sum, place: FigureDescription.Place = .record, _ help: String
    ) {
        var about = FigureDescription(name, unit, join, place, help)
        about.isOptional = true
        self.init(about, { $0[keyPath: path] }) { $0[keyPath: path] = $1 }
    }

    /// 1 or 0; joined it is whether any is 1.
    package init(_ name: String, _ path: any WritableKeyPath<Root, Bool> & Sendable, _ help: String) {
        self.init(FigureDescription(name, .count, .highest, .record, help), { $0[keyPath: path] ? 1 : 0 }) {
            $0[keyPath: path] = $1 == 1
        }
    }

    /// The figure as one of a larger record.
    package func inside<Whole>(_ part: any WritableKeyPath<Whole, Root> & Sendable) -> Figure<Whole> {
        let (value, set) = (value, set)
        return Figure<Whole>(about, { value($0[keyPath: part]) }) { set(&$0[keyPath: part], $1) }
    }

    /// Adds the number of another record.
    package func add(_ other: Root, to root: inout Root) {
        guard let more = value(other) else { return }
        let known = value(root) ?? 0
        set(&root, about.join == .sum ? known + more : max(known, more))
    }
}

/// What a figure is, whatever has it.
package struct FigureDescription: Sendable {
    package enum Unit: Sendable {
        case count, bytes, bytesPerSecond, milliseconds
        /// Of a time, or of one processor.
        case percent
    }

    /// How the numbers of several records become one.
    package enum Join: Sendable { case sum, highest }

    /// Where it is shown besides the record in Redis; each includes those before it.
    package enum Place: Sendable, Equatable {
        case record
        case json
        /// The metric has the joined number of all workers; its name without `prefetch_`.
        case metric(String)
    }

    package let name: String
    package let unit: Unit
    package let join: Join
    package let place: Place
    /// One or two sentences.
    package let help: String
    /// Whether it may be unknown.
    package var isOptional = false

    init(_ name: String, _ unit: Unit, _ join: Join, _ place: Place, _ help: String) {
        (self.name, self.unit, self.join, self.place, self.help) = (name, unit, join, place, help)
    }

    /// The name of its metric; nil if it has none.
    package var metric: String? { if case .metric(let name) = place { "prefetch_" + name } else { nil } }
}
