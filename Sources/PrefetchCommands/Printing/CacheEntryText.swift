internal import WebImage

/// A file of the cache, in words and as JSON.
enum CacheEntryText {
    /// Path, length, format, size in pixels, level, digest and date.
    static func facts(_ entry: CacheEntry) -> String {
        line(entry) + (entry.record?.digest.map { ", sha256 \($0.hex)" } ?? "")
    }

    /// `path, 12345 bytes, jpeg 640x480, passed decode, stored 2026-08-05T12:41:07Z`
    static func line(_ entry: CacheEntry) -> String {
        var text = "\(TerminalText.escaped(entry.path)), \(entry.size) bytes, \(entry.format.rawValue)"
        guard let record = entry.record else { return text + ", without a record" }
        if record.width > 0 { text += " \(record.width)x\(record.height)" }
        return text + ", passed \(record.level.name), stored \(UTCTime.text(seconds: record.storedAt))"
    }

    /// What is not known is null.
    static func members(_ entry: CacheEntry) -> [(String, JSONText)] {
        let record = entry.record
        func pixels(_ value: Int?) -> JSONText { value.flatMap { $0 > 0 ? .int($0) : nil } ?? .null }
        return [
            ("path", .string(entry.path)), ("bytes", .int(entry.size)), ("format", .string(entry.format.rawValue)),
            ("width", pixels(record?.width)), ("height", pixels(record?.height)),
            ("level", record.map { .string($0.level.name) } ?? .null),
            ("sha256", record?.digest.map { .string($0.hex) } ?? .null),
            ("stored_at", record.map { .string(UTCTime.text(seconds: $0.storedAt)) } ?? .null),
        ]
    }
}
