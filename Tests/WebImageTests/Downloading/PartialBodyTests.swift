import Testing

@testable import WebImage

@Suite("Which parts belong to one body")
struct PartialBodyTests {
    private static let date = "Mon, 05 Jan 2026 10:00:00 GMT"
    private static let sameDate = "Monday, 05-Jan-26 10:00:00 GMT"
    private static let later = "Mon, 05 Jan 2026 10:00:01 GMT"

    /// What the first response said, what the second says, and where the body ends then; nil: the parts are not joined.
    private struct Row {
        let name: String
        var eTag: String? = "\"1\""
        var date: String?
        var length: Int? = 10
        var range: String? = "bytes 4-9/10"
        var otherETag: String? = "\"1\""
        var otherDate: String?
        let end: Int?
    }

    private static let rows = [
        Row(name: "the rest", end: 10),
        Row(name: "another unit's case", range: "BYTES 4-9/10", end: 10),
        Row(name: "a part of the rest", range: "bytes 4-7/10", end: nil),
        // Validators.
        Row(name: "another ETag", otherETag: "\"2\"", end: nil),
        Row(name: "a weak ETag", otherETag: "W/\"1\"", end: nil),
        Row(name: "no ETag", otherETag: nil, otherDate: date, end: nil),
        Row(name: "an ETag that looks the same", eTag: "\"K\"", otherETag: "\"\u{212A}\"", end: nil),
        Row(name: "an ETag for a date", eTag: nil, date: date, otherETag: "\"1\"", otherDate: date, end: nil),
        Row(name: "a date", eTag: nil, date: date, otherETag: nil, otherDate: date, end: 10),
        Row(name: "a date in another form", eTag: nil, date: date, otherETag: nil, otherDate: sameDate, end: 10),
        Row(name: "no date", eTag: nil, date: date, otherETag: nil, end: 10),
        Row(name: "another date", eTag: nil, date: date, otherETag: nil, otherDate: later, end: nil),
        Row(name: "another date beside the ETag", date: date, otherDate: later, end: nil),
        Row(name: "an invalid date", date: date, otherDate: "yesterday", end: nil),
        Row(name: "no date beside the ETag", date: date, end: 10),
        Row(name: "a new date beside the ETag", otherDate: later, end: 10),
        // Lengths.
        Row(name: "longer", range: "bytes 4-10/11", end: nil),
        Row(name: "shorter", range: "bytes 4-8/9", end: nil),
        Row(name: "unknown, and was known", range: "bytes 4-9/*", end: nil),
        Row(name: "unknown as before", length: nil, range: "bytes 4-9/*", end: 10),
        Row(name: "known now", length: nil, end: 10),
        // Ranges.
        Row(name: "no range", range: nil, end: nil),
        Row(name: "earlier", range: "bytes 3-9/10", end: nil),
        Row(name: "later", range: "bytes 5-9/10", end: nil),
        Row(name: "from the start", range: "bytes 0-9/10", end: nil),
        Row(name: "backwards", range: "bytes 4-3/10", end: nil),
        Row(name: "beyond the end", range: "bytes 4-10/10", end: nil),
        Row(name: "another unit", range: "lines 4-9/10", end: nil),
        Row(name: "no unit", range: "4-9/10", end: nil),
        Row(name: "no end", range: "bytes 4-/10", end: nil),
        Row(name: "no length", range: "bytes 4-9", end: nil),
        Row(name: "a sign", range: "bytes +4-9/10", end: nil),
        Row(name: "not satisfied", range: "bytes */10", end: nil),
        Row(name: "two ranges", range: "bytes 4-9/10, 4-9/10", end: nil),
        Row(name: "too large a number", range: "bytes 4-9/99999999999999999999", end: nil),
        Row(name: "the largest number", length: nil, range: "bytes 4-9223372036854775807/*", end: nil),
    ]

    @Test("Parts are joined only if validators and lengths are those of one representation")
    func judgement() {
        for row in Self.rows {
            let partial = PartialBody(
                url: "http://h/a", body: ImageBody([1, 2, 3, 4]),
                representation: .init(eTag: row.eTag, lastModified: row.date, length: row.length), validator: "",
                nextInspection: .max)
            let rest = partial.rest(row.range, of: .init(eTag: row.otherETag, lastModified: row.otherDate))
            #expect(rest?.end == row.end, "\(row.name)")
            guard let rest, row.range?.hasSuffix("/10") == true else { continue }
            #expect(rest.representation.length == 10, "\(row.name)")
        }
    }

    @Test("A strong ETag of ASCII vouches for bytes, or a date that is older than the response")
    func validators() {
        func validator(_ eTag: String?, _ date: String?, sent: String? = nil) -> String? {
            PartialBody.validator(of: .init(eTag: eTag, lastModified: date), date: sent)
        }
        #expect(validator("\"1\"", nil) == "\"1\"")
        #expect(validator("W/\"1\"", Self.date, sent: Self.later) == nil)
        #expect(validator("\"\u{FFFD}\"", nil) == nil && validator("1", nil) == nil)
        #expect(validator(nil, Self.date, sent: Self.later) == Self.date)
        #expect(validator(nil, Self.date, sent: Self.sameDate) == nil && validator(nil, Self.date) == nil)
    }
}
