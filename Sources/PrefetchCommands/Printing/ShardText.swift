internal import Prefetch
internal import PrefetchModel
internal import WebImage

/// What a shard says of a line: what the list had beside the URL first, then img2dataset's columns in its order, and the digest of the file.
struct ShardText: Sendable {
    private static let own: [TypedColumn] = [
        TypedColumn("url", .text), TypedColumn("key", .text), TypedColumn("status", .text),
        TypedColumn("error_message", .text), TypedColumn("width", .integer), TypedColumn("height", .integer),
        TypedColumn("original_width", .integer), TypedColumn("original_height", .integer), TypedColumn("exif", .text),
        TypedColumn("sha256", .text), TypedColumn("stored_sha256", .text),
    ]
    private static let caption = "caption"

    /// As exifread, which img2dataset uses, names values of the tag Orientation, from 2.
    private static let turns = [
        "Mirrored horizontal", "Rotated 180", "Mirrored vertical", "Mirrored horizontal then rotated 90 CCW",
        "Rotated 90 CW", "Mirrored horizontal then rotated 90 CW", "Rotated 90 CCW",
    ]

    /// The columns of the table.
    let columns: [TypedColumn]
    private let kept: [(name: String, shown: String)]
    private let captionColumn: String?
    private let added: [ShardOptions.Added]

    /// * `columns`: of the list; `caption`: which of them has the captions.
    /// * `image`: the name that is that of the images; `added`: columns that are made of them.
    init(_ columns: [TypedColumn], caption: String?, image: String, added: [ShardOptions.Added]) {
        captionColumn = caption
        self.added = added
        // SQL does not tell a from A.
        let added = added.map { TypedColumn($0.rawValue, .text) }
        var taken = Set(((Self.own + added).map(\.name) + [Self.caption, image]).map { $0.lowercased() })
        var (kept, typed): ([(name: String, shown: String)], [TypedColumn]) = ([], [])
        for column in columns where caption.map({ !column.name.hasBytes(of: $0) }) ?? true {
            var shown = column.name
            while !taken.insert(shown.lowercased()).inserted { shown = "list_\(shown)" }
            kept.append((column.name, shown))
            typed.append(TypedColumn(shown, column.kind))
        }
        self.kept = kept
        self.columns = typed + (caption == nil ? [] : [TypedColumn(Self.caption, .text)]) + Self.own + added
    }

    func sample(_ line: ExportedLine, key: String) -> ShardSample {
        let (status, message) = Self.status(line)
        let columns = line.result.columns ?? [:]
        var members: [(String, JSONText)] = kept.map { ($0.shown, columns[$0.name]?.json ?? .null) }
        let caption = captionColumn.map { columns[$0] ?? .null }
        if let caption {
            members.append((Self.caption, caption.text.isEmpty ? .null : .string(ShownURL.text(caption.text))))
        }
        let image = line.image
        let original = image?.original
        func number(_ value: Int?) -> JSONText { value.map { .int($0) } ?? .null }
        members += [
            ("url", .url(line.result.url)), ("key", .string(key)), ("status", .string(status.rawValue)),
            ("error_message", message.map { .string($0) } ?? .null), ("width", number(image?.width)),
            ("height", number(image?.height)), ("original_width", number(original?.width ?? image?.width)),
            ("original_height", number(original?.height ?? image?.height)), ("exif", Self.exif(image)),
            ("sha256", (original == nil ? image?.sha256 : image?.originalSHA256).map { .string($0) } ?? .null),
            ("stored_sha256", (image?.sha256).map { .string($0) } ?? .null),
        ]
        for column in added {
            let text =
                switch column {
                case .perceptualHash: image?.perceptualHash
                case .duplicateOf: line.duplicateOf
                }
            members.append((column.rawValue, text.map { .string($0) } ?? .null))
        }
        return ShardSample(
            status, message, json: Array(JSONText.lines(members).utf8), row: Array(JSONText.object(members).text.utf8),
            caption: caption.map { Array(ShownURL.text($0.text).utf8) })
    }

    /// The orientation alone; nothing else of EXIF is recorded.
    private static func exif(_ image: ExportedLine.Image?) -> JSONText {
        guard let image else { return .null }
        let turn = image.traits.flatMap { $0.orientation > 1 ? turns[$0.orientation - 2] : nil }
        return .string(JSONText.object(turn.map { [("Image Orientation", .string($0))] } ?? []).text)
    }

    private static func status(_ line: ExportedLine) -> (ShardSample.Status, String?) {
        if line.image != nil { return (line.duplicateOf == nil ? .success : .duplicate, nil) }
        guard let outcome = line.result.outcome else { return (.failedToDownload, "no outcome yet") }
        guard outcome.isSkipped else {
            return (.failedToDownload, line.host.map { "in the cache of \($0)" } ?? "not in the cache any more")
        }
        let code = line.result.failure?.httpStatus.map { " \($0)" } ?? ""
        let status: ShardSample.Status =
            switch outcome {
            case .badImage, .tooLarge, .unsupported, .filtered, .poison: .failedToResize
            default: .failedToDownload
            }
        return (status, "\(outcome)\(code)")
    }
}
