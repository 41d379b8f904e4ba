internal import FoundationEssentials
internal import WebImage

/// `00000_stats.json`: the counts of a shard, under img2dataset's names. It gets its name last: a shard with it is whole.
struct ShardStats: Codable, Equatable {
    /// Lines.
    var count = 0
    var successes = 0
    var failedToDownload = 0
    var failedToResize = 0
    /// Seconds from the beginning of the batch to its end, or to when the shard was written while it ran.
    var duration: Double
    /// The same as seconds since 1970.
    var startTime: Double, endTime: Double
    /// Lines by `success`, or why there is no image.
    var statusDict: [String: Int] = [:]
    /// The batch that has written it (`id@nonce`), lines of a shard, and how its images were changed.
    var batch: String, perShard: Int, images: String
    /// SHA-256 of its lines: of each the URL and the kept columns.
    var lines = ""
    /// The table's, each with its type.
    var columns: [String] = []

    private enum CodingKeys: String, CodingKey {
        case count, successes, failedToDownload = "failed_to_download", failedToResize = "failed_to_resize", duration
        case startTime = "start_time", endTime = "end_time", statusDict = "status_dict", batch
        case perShard = "per_shard", images, lines = "lines_sha256", columns
    }

    init(_ batch: ShardBatch, perShard: Int) {
        (self.batch, self.perShard, images) = (batch.id, perShard, batch.images)
        let (start, end) = (batch.start, batch.end ?? Int(WallClock.now * 1000))
        startTime = Double(start) / 1000
        endTime = Double(max(start, end)) / 1000
        duration = Double(max(0, end - start)) / 1000
    }

    /// Nil of what is none of these.
    init?(_ bytes: [UInt8]) {
        guard let stats = try? JSONDecoder().decode(ShardStats.self, from: Data(bytes)) else { return nil }
        self = stats
    }

    mutating func add(_ sample: ShardSample) {
        count += 1
        switch sample.status {
        case .success: successes += 1
        case .failedToDownload: failedToDownload += 1
        case .failedToResize: failedToResize += 1
        case .duplicate: break
        }
        statusDict[sample.message ?? sample.status.rawValue, default: 0] += 1
    }

    /// Lines whose image another line has.
    var duplicates: Int { statusDict[ShardSample.Status.duplicate.rawValue] ?? 0 }

    var bytes: [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return Array((try? encoder.encode(self)) ?? Data()) + [UInt8(ascii: "\n")]
    }

    /// Whether both are of one shard: of a batch, whose list may have grown, or of the same lines, whatever batch they were in.
    func isOfShard(of other: ShardStats) -> Bool {
        (batch == other.batch || !lines.isEmpty && lines == other.lines) && perShard == other.perShard
            && images == other.images
    }

    /// Whether the lines ended in the same way.
    func hasCounts(of other: ShardStats) -> Bool {
        isOfShard(of: other) && count == other.count && statusDict == other.statusDict && columns == other.columns
    }
}
