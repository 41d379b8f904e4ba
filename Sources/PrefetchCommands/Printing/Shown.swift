internal import Prefetch
internal import PrefetchModel
internal import WebImage

/// A value of an answer: for programs, for people, and what programs may expect.
protocol Shown: Sendable {
    var json: JSONText { get }
    /// On one line; empty if people read it in another way.
    var text: String { get }
    /// As a metric; nil if it is no number.
    var number: Double? { get }
    static var shape: Shape { get }
}

/// The shape of the JSON of a type, from which docs/schema.json is written.
indirect enum Shape: Sendable {
    case integer, number, string, boolean, moment
    /// What others have written.
    case any
    case names([String])
    case constant(JSONText)
    case list(any Shown.Type)
    /// An object whose members have names that are data.
    case map(any Shown.Type)
    case nullable(any Shown.Type)
    case object([Member])
    /// Any of these.
    case either([Shape])

    struct Member: Sendable {
        let name: String
        let about: String?
        let isRequired: Bool
        let shape: Shape
    }

    /// The shape of a type that may have a definition of its own.
    case type(any Shown.Type)

    /// Whether a table aligns it at its end.
    var isNumber: Bool {
        switch self {
        case .integer, .number: true
        case .nullable(let type), .type(let type): type.shape.isNumber
        default: false
        }
    }
}

extension Shown {
    var text: String { "" }
    var number: Double? { nil }
}

extension Int: Shown {
    var json: JSONText { .int(self) }
    var text: String { Wording.count(self) }
    var number: Double? { Double(self) }
    static var shape: Shape { .integer }
}

extension Bool: Shown {
    var json: JSONText { .bool(self) }
    static var shape: Shape { .boolean }
}

/// From outside: escaped for people.
extension String: Shown {
    var json: JSONText { .string(self) }
    var text: String { TerminalText.escaped(self) }
    static var shape: Shape { .string }
    /// Nil if there is nothing to say.
    var unlessEmpty: String? { isEmpty ? nil : self }
}

extension Optional: Shown where Wrapped: Shown {
    var json: JSONText { self?.json ?? .null }
    var text: String { self?.text ?? "" }
    var number: Double? { self?.number }
    static var shape: Shape { .nullable(Wrapped.self) }
}

extension Array: Shown where Element: Shown {
    var json: JSONText { .array(map(\.json)) }
    static var shape: Shape { .list(Element.self) }
}

/// Members whose names are data.
struct Members<Value: Shown>: Shown {
    let members: [(name: String, value: Value)]

    init(_ members: [(name: String, value: Value)]) { self.members = members }

    var json: JSONText { .object(members.map { ($0.name, $0.value.json) }) }
    static var shape: Shape { .map(Value.self) }
}

// MARK: - Units

struct Bytes: Shown {
    let count: Int

    init(_ count: Int) { self.count = count }

    var json: JSONText { .int(count) }
    var text: String { Wording.bytes(count) }
    var number: Double? { Double(count) }
    static var shape: Shape { .integer }
}

struct Seconds: Shown {
    let value: Double
    let digits: Int

    init(_ value: Double, digits: Int = 3) { (self.value, self.digits) = (value, digits) }

    init(milliseconds: Int) { self.init(Double(milliseconds) / 1000) }

    var json: JSONText { .number(value, digits: digits) }
    var text: String { Wording.seconds(value) }
    var number: Double? { value }
    static var shape: Shape { .number }
}

/// A part of a whole.
struct Share: Shown {
    let part: Int, whole: Int

    var json: JSONText { .number(Double(part) / Double(max(1, whole)), digits: 4) }
    var text: String { Self.texts([self])[0] }
    static var shape: Shape { .number }

    /// Percents with a decimal, rounded. Those of one whole that is all there add up to 100.0: the largest remainders get what rounding down
    /// leaves. A part is neither 0.0% nor 100.0% unless it is nothing or all.
    static func texts(_ shares: [Share]) -> [String] {
        guard let whole = shares.first?.whole else { return [] }
        let scaled = shares.map {
            $0.whole > 0 ? ($0.part * 1000).quotientAndRemainder(dividingBy: $0.whole) : (1000, 0)
        }
        var tenths = scaled.map(\.0)
        let raisable = shares.indices.filter { tenths[$0] < 999 }
        let areAll = shares.reduce(0) { $0 + $1.part } == whole && shares.allSatisfy { $0.whole == whole }
        if areAll {
            let largest = raisable.sorted { (scaled[$1].1, $0) < (scaled[$0].1, $1) }
            for index in largest.prefix(max(0, 1000 - tenths.reduce(0, +))) { tenths[index] += 1 }
        } else {
            for index in raisable where scaled[index].1 * 2 >= shares[index].whole { tenths[index] += 1 }
        }
        return zip(shares, tenths).map { share, tenths in
            share.part > 0 && tenths == 0 ? "<0.1%" : "\(tenths / 10).\(tenths % 10)%"
        }
    }
}

/// A moment in UTC, to the second.
struct Moment: Shown {
    let milliseconds: Int

    /// * `milliseconds`: since 1970; nil and 0 are no moment.
    init?(_ milliseconds: Int?) {
        guard let milliseconds, milliseconds > 0 else { return nil }
        self.milliseconds = milliseconds
    }

    init(seconds: Int) { milliseconds = seconds * 1000 }

    var json: JSONText { .string(text) }
    var text: String { UTCTime.text(milliseconds: milliseconds) }
    var number: Double? { Double(milliseconds) / 1000 }
    static var shape: Shape { .moment }
}

/// A URL, or a sentence that may name URLs: masked.
struct Masked: Shown {
    let json: JSONText
    let text: String

    static func url(_ url: String) -> Masked { Masked(json: .url(url), text: TerminalText.url(url)) }

    static func sentence(_ text: String) -> Masked {
        Masked(json: .sentence(text), text: TerminalText.escaped(text))
    }

    static var shape: Shape { .string }
}

// MARK: - Names

/// One of the names of an enumeration.
protocol ShownName: Shown, CaseIterable {
    var name: String { get }
}

extension ShownName {
    var json: JSONText { .string(name) }
    var text: String { name }
    static var shape: Shape { .names(allCases.map(\.name)) }
}

extension ShownName where Self: RawRepresentable, RawValue == String {
    var name: String { rawValue }
}

extension BatchStatus.State: ShownName {}
extension BatchStatus.Ending: ShownName {}
extension WorkerRecord.State: ShownName {}
extension OpenURL.State: ShownName {}
extension HostReport.State: ShownName {}
extension URLFacts.ListingState: ShownName {}
extension ValidationLevel: ShownName {}
extension UnverifiableFormats: ShownName {}
extension Durability: ShownName {}
extension FailedURLPolicy: ShownName {}
extension Compatibility: ShownName {}
extension ConcurrencyReason: ShownName {}
extension ImageColorSpace: ShownName {}
extension ImageFormat: ShownName {}
extension LimitCause: ShownName {}
extension FailureReason: ShownName {}
extension PrefetchOutcome: ShownName {}

/// The outcome of a URL without an image.
struct SkippedOutcome: ShownName {
    let outcome: PrefetchOutcome

    init(_ outcome: PrefetchOutcome) { self.outcome = outcome }

    var name: String { outcome.name }
    static var allCases: [SkippedOutcome] { PrefetchOutcome.allCases.filter(\.isSkipped).map { Self($0) } }
}

extension ConcurrentDownloads: Shown {
    var json: JSONText { count?.json ?? .string("auto") }
    static var shape: Shape { .either([.integer, .string]) }
}
