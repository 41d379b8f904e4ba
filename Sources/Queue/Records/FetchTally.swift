internal import Redis

/// Figures of a batch's images and transfers: counts and sums, so that those of all workers can be added. Hits do not count.
package struct FetchTally: Sendable, Equatable {
    package struct Fetch: Sendable {
        /// Nil without a transferred image. For `unsupported` the format of the body.
        package var format: ImageFormat?
        /// Of the last request; nil without an image.
        package var timing: DownloadTiming?
        /// Number of tries, 1 if the first succeeded.
        package var tries: Int

        /// Announced bytes that were not transferred, if the image was refused by ``ImageRules``; nil otherwise.
        package var savedBytes: Int?

        package init(format: ImageFormat?, timing: DownloadTiming?, tries: Int, savedBytes: Int? = nil) {
            (self.format, self.timing, self.tries, self.savedBytes) = (format, timing, tries, savedBytes)
        }
    }

    package enum Stage: Int, CaseIterable, Sendable {
        case nameLookup, connect, tls, firstByte, rest
    }

    /// Upper bounds of the size classes in bytes, exclusive; the last class has no bound.
    package static let sizeBounds = [10_000, 50_000, 200_000, 1_000_000, 5_000_000]

    /// Last requests of images that were downloaded or not modified.
    package private(set) var durations = DurationHistogram()
    package private(set) var sizes = [Int](repeating: 0, count: sizeBounds.count + 1)
    package private(set) var formats: [ImageFormat: Int] = [:]
    /// Bodies that were not kept because their format cannot be verified.
    package private(set) var unsupported: [ImageFormat: Int] = [:]
    /// Microseconds that requests spent in each stage, by its number.
    private var stages = [Int](repeating: 0, count: Stage.allCases.count)
    package private(set) var reused = 0
    package private(set) var successfulTries = 0, failedTries = 0
    /// Transfers that ended because the image broke one of the ``ImageRules``, and the announced bytes that were not transferred.
    package private(set) var refusedImages = 0, savedBytes = 0

    package init() {}

    package mutating func add(_ fetch: Fetch, outcome: PrefetchOutcome, bytes: Int) {
        if let saved = fetch.savedBytes {
            refusedImages += 1
            savedBytes += saved
            failedTries += max(0, fetch.tries - 1)
            return
        }
        failedTries += max(0, outcome.isSkipped ? fetch.tries : fetch.tries - 1)
        if outcome == .unsupported { unsupported[fetch.format ?? .unknown, default: 0] += 1 }
        guard !outcome.isSkipped else { return }
        successfulTries += 1
        if outcome == .downloaded {
            sizes[Self.sizeBounds.firstIndex { bytes < $0 } ?? Self.sizeBounds.count] += 1
            formats[fetch.format ?? .unknown, default: 0] += 1
        }
        guard let timing = fetch.timing else { return }
        durations.add(timing.total)
        if timing.reusedConnection { reused += 1 }
        // libcurl's times count from the start of the request; a stage that did not happen is 0.
        var before = 0.0
        let ends = [timing.nameLookup, timing.connect, timing.tls, timing.firstByte, timing.total]
        for (stage, end) in zip(Stage.allCases, ends) where end > before {
            stages[stage.rawValue] += Int((end - before) * 1e6)
            before = end
        }
    }

    /// Average seconds per request in this stage; nil without requests.
    package func mean(_ stage: Stage) -> Double? {
        let total = durations.total
        return total > 0 ? Double(stages[stage.rawValue]) / 1e6 / Double(total) : nil
    }

    /// Microseconds that all requests together spent in this stage.
    package func microseconds(_ stage: Stage) -> Int { stages[stage.rawValue] }

    // MARK: In Redis

    /// Increments for the batch's fields: `t` + index of a duration, `s` + size class, `f` + byte of a format (``ImageFormat/recordCode``),
    /// `u` + byte of a format that was not kept, `d` + number of a stage; `d5` requests over an existing connection, `d6` microseconds of
    /// all; `a0` failed tries, `a1` successful ones, `a2` refused images, `a3` bytes that were saved.
    var fields: [(name: String, value: Int)] {
        var fields: [(name: String, value: Int)] = []
        func put(_ name: String, _ value: Int) { if value > 0 { fields.append((name, value)) } }
        for (index, count) in durations.counts.enumerated() where count > 0 { put("t\(index)", count) }
        for (index, count) in sizes.enumerated() { put("s\(index)", count) }
        for format in ImageFormat.allCases { put("f\(format.recordCode)", formats[format] ?? 0) }
        for format in ImageFormat.allCases { put("u\(format.recordCode)", unsupported[format] ?? 0) }
        for stage in Stage.allCases { put("d\(stage.rawValue)", stages[stage.rawValue]) }
        put("d5", reused)
        put("d6", durations.sum)
        put("a0", failedTries)
        put("a1", successfulTries)
        put("a2", refusedImages)
        put("a3", savedBytes)
        return fields
    }

    /// Reads the fields of a batch; ignores others.
    init(fields: [String: RedisValue]) {
        for (name, value) in fields where name.utf8.count <= 3 {
            // Above any real count, and small enough that sums cannot overflow.
            guard let number = Int(plausible: name.dropFirst()), let value = value.exactInt,
                (0...1 << 48).contains(value)
            else {
                continue
            }
            switch (name.first, number) {
            case ("t", _): durations.add(value, at: number)
            case ("s", sizes.indices): sizes[number] += value
            case ("f", _):
                if let code = UInt8(exactly: number), let format = ImageFormat(recordCode: code) {
                    formats[format, default: 0] += value
                }
            case ("u", _):
                if let code = UInt8(exactly: number), let format = ImageFormat(recordCode: code) {
                    unsupported[format, default: 0] += value
                }
            case ("d", 5): reused = value
            case ("d", 6): durations.add(sum: value)
            case ("d", _): if stages.indices.contains(number) { stages[number] = value }
            case ("a", 0): failedTries = value
            case ("a", 1): successfulTries = value
            case ("a", 2): refusedImages = value
            case ("a", 3): savedBytes = value
            default: break
            }
        }
    }
}
