internal import Prefetch
internal import Redis

/// What resolvers were asked, in words and as JSON.
enum NameText {
    /// `names 1,204 asked, 12 waiting (64 at once)`; nil if none was asked.
    static func line(_ names: NameReport) -> String? {
        guard names.queries > 0 else { return nil }
        if names.silence > 0 {
            return
                "names: \(Wording.count(names.waiting)) waiting, no answer for \(Wording.seconds(Double(names.silence) / 1000))"
        }
        var text = "names \(Wording.count(names.queries)) asked"
        if names.waiting > 0 {
            text += ", \(Wording.count(names.waiting)) waiting (\(Wording.count(names.window)) at once)"
        }
        return text
    }

    static func object(_ names: NameReport) -> JSONText {
        .object([
            ("queries", .int(names.queries)), ("answered", .int(names.answered)), ("nxdomain", .int(names.noNames)),
            ("failed", .int(names.failed)), ("unanswered", .int(names.unanswered)), ("cached", .int(names.cacheHits)),
            ("window", .int(names.window)), ("waiting", .int(names.waiting)),
            ("silent_seconds", names.silence > 0 ? .number(Double(names.silence) / 1000) : .null),
        ])
    }
}
