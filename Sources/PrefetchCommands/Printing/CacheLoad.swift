internal import Prefetch
internal import Redis

/// What the workers say of the cache they write into, or of several.
struct CacheLoad: Equatable {
    var caches = 0
    var images = 0, bytes = 0
    /// What it may have; nil where nobody limits it, or there are several.
    var limit: Int?

    /// * `reports`: what each worker said last; those with one cache know of the same figures, at different moments.
    init(_ reports: [WorkerReport]) {
        var newest: [String: (beat: Int, images: Int, bytes: Int, limit: Int?)] = [:]
        for report in reports {
            guard !report.cache.isEmpty, let images = report.cacheImages, let bytes = report.cacheBytes else {
                continue
            }
            let known = newest[report.cache]
            let limit = [known?.limit, report.cacheLimit].compactMap { $0 }.min()
            if let known, known.beat > report.beat {
                newest[report.cache]?.limit = limit
            } else {
                newest[report.cache] = (report.beat, images, bytes, limit)
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
