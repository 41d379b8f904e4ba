internal import Prefetch
internal import Redis
internal import WebImage

/// The caches of machines, in words.
enum CacheText {
    /// `img-02:/var/cache/prefetch`
    static func place(_ cache: BatchCache) -> String {
        TerminalText.escaped(cache.directory.isEmpty ? cache.host : "\(cache.host):\(cache.directory)")
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

/// A file of the cache, in words.
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
        if record.frameCount > 1 { text += ", \(record.frameCount) frames" }
        return text + ", passed \(record.level.name), stored \(UTCTime.text(seconds: record.storedAt))"
    }
}

extension BatchCache: Record {
    static let fields: [Field<Self>] = [Field("id", \.id), Field("host", \.host), Field("directory", \.directory)]
}

/// How much of the cache something is.
struct CacheUsage: Record {
    private(set) var count = 0
    private(set) var bytes = 0
    private(set) var allocated = 0

    static let fields: [Field<Self>] = [
        Field("count", "images", \.count), Field("bytes", "bytes") { Bytes($0.bytes) },
        Field("allocated_bytes", "on disk") { Bytes($0.allocated) },
    ]

    /// `3 images, 150 kB, 160 kB on disk`
    var text: String {
        "\(Wording.count(count)) image\(count == 1 ? "" : "s"), \(Wording.bytes(bytes)), \(Wording.bytes(allocated)) on disk"
    }

    /// Adds an image.
    mutating func add(_ entry: CacheEntry) {
        count += 1
        bytes = Plausible.sum(bytes, entry.size)
        allocated += entry.allocatedSize
    }
}

/// The caches that the workers write into, by their reports.
struct CacheLoad: Record, Equatable {
    var caches = 0
    var images = 0, bytes = 0
    /// The limit of its size; nil without one, and for several caches.
    var limit: Int?

    /// * `reports`: what each worker said last; those with one cache know of the same figures, at different moments.
    init(_ reports: [WorkerReport]) {
        var newest: [ByteText: (beat: Int, images: Int, bytes: Int, limit: Int?)] = [:]
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

    static let fields: [Field<Self>] = [
        Field("caches", \.caches), Field("images", \.images), Field("bytes", \.bytes), Field("limit_bytes", \.limit),
    ]

    /// Nil if no worker has counted.
    var unlessUnknown: CacheLoad? { caches > 0 ? self : nil }

    /// `53 GB of 200 GB (27%), 571,930 images`, or the first part of it that has room; nil if nothing is known, or not even
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
