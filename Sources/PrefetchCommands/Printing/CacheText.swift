internal import Prefetch

/// The caches of machines, in words and as JSON.
enum CacheText {
    /// `img-02:/var/cache/prefetch`
    static func place(_ cache: BatchCache) -> String {
        TerminalText.escaped(cache.directory.isEmpty ? cache.host : "\(cache.host):\(cache.directory)")
    }

    static func object(_ cache: BatchCache) -> JSONText {
        .object([
            ("id", .string(cache.id)), ("host", .string(cache.host)), ("directory", .string(cache.directory)),
        ])
    }

    /// `1,293 images are in other caches: 1,000 in img-02:/srv/images, 293 in img-03:/srv/images`; the most first, at most 20 of them.
    static func elsewhere(_ images: [BatchCache: Int]) -> String? {
        let sorted = images.sorted { ($1.value, place($0.key)) < ($0.value, place($1.key)) }
        guard !sorted.isEmpty else { return nil }
        let named = sorted.prefix(20).map { "\(Wording.count($0.value)) in \(place($0.key))" }
        let rest = sorted.count > 20 ? ", and in \(Wording.count(sorted.count - 20)) more" : ""
        let all = sorted.reduce(0) { $0 + $1.value }
        return "\(Wording.count(all, "image")) in other caches: \(named.joined(separator: ", "))\(rest)"
    }
}
