internal import Prefetch
internal import PrefetchModel
internal import WebImage

// Objects of which commands print one a line.

extension FailureDetail: Record {
    static let fields: [Field<FailureDetail>] = [
        Field("line", "line", \.line), .column("tries", \.tries), .column("cause") { BatchText.cause(of: $0) },
        Field("url", "URL") { Masked.url($0.url) }, Field("outcome") { SkippedOutcome($0.outcome) },
        Field("reason", \.reason), Field("http_status", \.httpStatus),
        Field("detail", "detail") { Masked.sentence($0.detail) }, Field("tries", \.tries),
        Field("ended") { Moment($0.ended) },
    ]
}

extension ExportedLine: Record {
    static let fields: [Field<ExportedLine>] = [
        Field("line", \.result.line), Field("url") { Masked.url($0.result.url) }, Field("outcome", \.result.outcome),
        Field("path", \.image?.path), Field("bytes", \.image?.bytes), Field("sha256", \.image?.sha256),
        Field("format", \.image?.format), Field("width", \.image?.width), Field("height", \.image?.height),
        Field("level", \.image?.level),
        Field("orientation", about: "1 to 8, as in EXIF.", \.image?.traits?.orientation),
        Field("frames", \.image?.traits?.frames),
        Field("alpha", about: "Whether pixels may be transparent.", \.image?.traits?.hasAlpha),
        Field("color_space", \.image?.traits?.colorSpace),
        Field(
            "http_status", about: "Of a line that was skipped, if a response came.", \.result.failure?.httpStatus),
        Field(
            "tries", about: "Of a line that was skipped, the requests made: 255 is that many or more.",
            \.result.failure?.tries),
        Field("ended", about: "Of a line that was skipped.") { Moment($0.result.ended) },
        Field(
            "host",
            about:
                "The machine that has the image: of one that is in another cache, and of one that --merge took from a "
                + "manifest.", \.host),
        .ifKnown(
            "columns", about: "What the list had beside the URL (--keep-columns).",
            { line in
                line.result.columns.map { columns in
                    Members(columns.sorted { $0.key < $1.key }.map { ($0.key, $0.value) })
                }
            }),
    ]
}

/// Of a list: secrets of URLs are masked.
extension ColumnValue: Shown {
    var json: JSONText {
        switch self {
        case .text(let text): .url(text)
        case .json(let json): .raw(json.utf8.elementsEqual("null".utf8) ? json : shownText)
        }
    }

    /// For a cell.
    var shownText: String {
        switch self {
        case .text(let text): ShownURL.url(text)
        // In JSON a slash may be escaped.
        case .json: ShownURL.text(self.text.replacing("\\/", with: "/"))
        }
    }

    static var shape: Shape { .any }
}

extension Blacklist.FailedURL: Record {
    static let fields: [Field<Self>] =
        [Field("url") { Masked.url($0.url) }] + FailedURLEntry.fields.map { $0.inside(\.entry) }
}

extension FailedURLEntry: Record {
    static let fields: [Field<FailedURLEntry>] = [
        Field("outcome") { $0.outcome.map { SkippedOutcome($0) } }, Field("http_status", \.httpStatus),
        Field("first") { Moment($0.first) }, Field("last") { Moment($0.last) }, Field("count", \.count),
        Field("next", about: "When it lapses: a later batch requests it again.") { Moment($0.next) },
        Field("batch", \.batch.unlessEmpty), Field("detail") { $0.detail.unlessEmpty.map { Masked.sentence($0) } },
    ]
}

extension CacheEntry: Record {
    static let fields: [Field<CacheEntry>] = [
        Field("path", \.path), Field("bytes", \.size), Field("format", \.format),
        Field("width") { known($0.record?.width) }, Field("height") { known($0.record?.height) },
        Field("orientation", about: "1 to 8, as in EXIF.") { ($0.record?.orientation.rawValue).map { Int($0) } },
        Field("frames", \.record?.frameCount),
        Field("alpha", about: "Whether pixels may be transparent.", \.record?.hasAlpha),
        Field("color_space", \.record?.colorSpace), Field("level", \.record?.level),
        Field("sha256", \.record?.digest?.hex), Field("stored_at") { $0.record.map { Moment(seconds: $0.storedAt) } },
    ]

    private static func known(_ pixels: Int?) -> Int? { pixels.flatMap { $0 > 0 ? $0 : nil } }
}
