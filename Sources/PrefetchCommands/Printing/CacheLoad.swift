internal import Prefetch
internal import Redis

/// What the workers say of the cache they write into, or of several.
struct CacheLoad: Equatable {
    var caches = 0
    var images = 0, bytes = 0
    /// What it may have; nil where nobody limits it, or there are several.
    var limit: Int?

    /// * `facts`: what each worker said last; those with one cache know of the same figures, at different moments.
    init(_ facts: [[String: String]]) {
        var newest: [String: (beat: Int, images: Int, bytes: Int, limit: Int?)] = [:]
        for fact in facts {
            func number(_ name: String) -> Int? { fact[name].flatMap { Int(plausible: $0) }.map { max(0, $0) } }
            guard let id = fact["cache"], let images = number("cache_images"), let bytes = number("cache_bytes") else {
                continue
            }
            let (beat, known) = (number("beat") ?? 0, newest[id])
            let limit = [known?.limit, number("cache_limit")].compactMap { $0 }.min()
            if let known, known.beat > beat {
                newest[id]?.limit = limit
            } else {
                newest[id] = (beat, max(0, images), max(0, bytes), limit)
            }
        }
        caches = newest.count
        for cache in newest.values {
            images += cache.images
            bytes += cache.bytes
        }
        limit = caches == 1 ? newest.values.first?.limit : nil
    }

    /// Null where nobody knows anything.
    var object: JSONText {
        guard caches > 0 else { return .null }
        return .object([
            ("caches", .int(caches)), ("images", .int(images)), ("bytes", .int(bytes)),
            ("limit_bytes", limit.map { .int($0) } ?? .null),
        ])
    }

    /// `53 GB of 200 GB (27%), 571,930 images`, or the first part of it that has room; nil where nobody knows anything, or not even
    /// that has room.
    func text(columns: Int) -> String? {
        guard caches > 0 else { return nil }
        var parts = [caches > 1 ? "\(caches) caches, \(Wording.bytes(bytes))" : Wording.bytes(bytes)]
        if let limit {
            let share = limit > 0 ? Double(bytes) / Double(limit) * 100 : 100
            parts += [" of \(Wording.bytes(limit))", " (\(Wording.decimal(share, digits: 0))%)"]
        }
        parts.append(", \(Wording.count(images, "image"))")
        var text: String?
        for part in parts {
            let longer = (text ?? "") + part
            guard longer.utf8.count <= columns else { break }
            text = longer
        }
        return text
    }
}
