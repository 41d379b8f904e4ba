internal import Redis

/// What the images of a batch were like and how long their transfers took: counts and sums alone, so that those of all workers can be added.
/// Of images that somebody was asked for; a hit is in none of them.
package struct FetchTally: Sendable, Equatable {
    /// What a worker knows of a URL it has asked for.
    package struct Fetch: Sendable {
        /// Nil where there is no image of it, or one that was not transferred. Of an `unsupported` one the format it is in.
        package var format: ImageFormat?
        /// Of the last request; nil where there is no image.
        package var timing: DownloadTiming?
        /// How often it was asked for, 1 where it went well at once.
        package var tries: Int

        package init(format: ImageFormat?, timing: DownloadTiming?, tries: Int) {
            (self.format, self.timing, self.tries) = (format, timing, tries)
        }
    }

    /// The steps of a transfer, in their order.
    package enum Stage: Int, CaseIterable, Sendable {
        case nameLookup, connect, tls, firstByte, rest
    }

    /// Bytes of an image below which it belongs to the size of the same index; the last size has no bound.
    package static let sizeBounds = [10_000, 50_000, 200_000, 1_000_000, 5_000_000]

    /// The last requests of images that were downloaded or had not changed.
    package private(set) var durations = DurationHistogram()
    /// How many images were so large.
    package private(set) var sizes = [Int](repeating: 0, count: sizeBounds.count + 1)
    package private(set) var formats: [ImageFormat: Int] = [:]
    /// How many bodies were in a format that cannot be verified, and were not kept.
    package private(set) var unsupported: [ImageFormat: Int] = [:]
    /// Microseconds that the requests spent so.
    package private(set) var stages: [Stage: Int] = [:]
    /// Requests that went over a connection that was there.
    package private(set) var reused = 0
    /// Requests that brought what was asked for, and those that did not.
    package private(set) var goodTries = 0, failedTries = 0

    /// Nothing.
    package init() {}

    /// Adds a URL that ended.
    package mutating func add(_ fetch: Fetch, outcome: PrefetchOutcome, bytes: Int) {
        failedTries += max(0, outcome.isSkipped ? fetch.tries : fetch.tries - 1)
        if outcome == .unsupported { unsupported[fetch.format ?? .unknown, default: 0] += 1 }
        guard !outcome.isSkipped else { return }
        goodTries += 1
        if outcome == .downloaded {
            sizes[Self.sizeBounds.firstIndex { bytes < $0 } ?? Self.sizeBounds.count] += 1
            formats[fetch.format ?? .unknown, default: 0] += 1
        }
        guard let timing = fetch.timing else { return }
        durations.add(timing.total)
        if timing.reusedConnection { reused += 1 }
        // libcurl counts each from the beginning, and says 0 where there was no such step.
        var before = 0.0
        let ends = [timing.nameLookup, timing.connect, timing.tls, timing.firstByte, timing.total]
        for (stage, end) in zip(Stage.allCases, ends) where end > before {
            stages[stage, default: 0] += Int((end - before) * 1e6)
            before = end
        }
    }

    /// Seconds that a request spent so, on the average; nil where there was none.
    package func mean(_ stage: Stage) -> Double? {
        let total = durations.total
        return total > 0 ? Double(stages[stage] ?? 0) / 1e6 / Double(total) : nil
    }

    // MARK: In Redis

    /// What is to be added to the fields of the batch, by their names: `t` and the index of a duration, `s` that of a size, `f` and the byte
    /// that stands for a format (``ImageFormat/recordCode``), `u` and that byte a format that was not kept, `d` and the number of a stage; `d5` requests over a connection that was there,
    /// `d6` microseconds of all; `a0` tries in vain, `a1` good ones.
    var fields: [(name: String, value: Int)] {
        var fields: [(name: String, value: Int)] = []
        func put(_ name: String, _ value: Int) { if value > 0 { fields.append((name, value)) } }
        for (index, count) in durations.counts.enumerated() where count > 0 { put("t\(index)", count) }
        for (index, count) in sizes.enumerated() { put("s\(index)", count) }
        for format in ImageFormat.allCases { put("f\(format.recordCode)", formats[format] ?? 0) }
        for format in ImageFormat.allCases { put("u\(format.recordCode)", unsupported[format] ?? 0) }
        for stage in Stage.allCases { put("d\(stage.rawValue)", stages[stage] ?? 0) }
        put("d5", reused)
        put("d6", durations.sum)
        put("a0", failedTries)
        put("a1", goodTries)
        return fields
    }

    /// Reads the fields of a batch; what is none of these is passed over.
    init(fields: [String: RedisValue]) {
        for (name, value) in fields where name.utf8.count <= 3 {
            // No count comes near that; together they stay far from the end of the numbers.
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
            case ("d", _): if let stage = Stage(rawValue: number) { stages[stage] = value }
            case ("a", 0): failedTries = value
            case ("a", 1): goodTries = value
            default: break
            }
        }
    }
}
