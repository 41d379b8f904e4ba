/// How lines are spread over shards, and what they are called: as img2dataset 1.47 does it, so that what reads its results reads these. A shard is
/// a range of lines and ends at the end of each file of the list; the key of a line is the number of its shard, followed by its place in the shard.
struct ShardLayout: Sendable {
    /// One line's place.
    struct Place: Sendable, Equatable {
        var shard: Int
        /// From 0.
        var index: Int
    }

    private static let shardDigits = 5

    private let perShard: Int
    private let indexDigits: Int
    /// Lines that are left of each file, the last file first; the last shard of all ends with the list.
    private var files: [Int]
    private var place = Place(shard: 0, index: 0)

    /// * `perShard`: lines, at least 1.
    /// * `files`: lines with an entry of each file of the list; empty if it is one.
    init(perShard: Int, files: [Int]) {
        self.perShard = max(1, perShard)
        self.files = files.reversed()
        var (digits, limit) = (0, 1)
        while limit < self.perShard { (digits, limit) = (digits + 1, limit * 10) }
        indexDigits = digits
    }

    /// The place of the next line.
    mutating func next() -> Place {
        while let left = files.last, left == 0 {
            files.removeLast()
            if place.index > 0 { place = Place(shard: place.shard + 1, index: 0) }
        }
        if place.index == perShard { place = Place(shard: place.shard + 1, index: 0) }
        if !files.isEmpty { files[files.count - 1] -= 1 }
        defer { place.index += 1 }
        return place
    }

    /// `00007`.
    static func name(_ shard: Int) -> String { padded(shard, shardDigits) }

    /// `000070042`: a number, unique over all shards.
    func key(_ place: Place) -> String {
        let scale = (0..<indexDigits).reduce(1) { scale, _ in scale * 10 }
        return Self.padded(place.shard * scale + place.index, Self.shardDigits + indexDigits)
    }

    private static func padded(_ number: Int, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
}

/// What a folder of shards is like.
package struct ShardOptions: Sendable, Equatable {
    package enum Form: String, Sendable, CaseIterable {
        /// Archives of images, and a table beside each.
        case webDataset = "webdataset"
        /// Tables with the images in them.
        case parquet
        /// The tables alone, to be put beside archives.
        case tables = "parquet-metadata"
    }

    package enum Sidecar: String, Sendable, CaseIterable {
        case parquet, jsonl
    }

    /// Lines of a shard, as in img2dataset.
    package static let usualPerShard = 10_000

    package var form: Form
    /// Lines of a shard.
    package var perShard = usualPerShard
    /// What an image is called behind its key, and the column that has it; `ext`: by its format. Nil: what all images are, or jpg.
    package var imageMember: String?
    /// The table beside an archive; nil: Parquet if there is a program that writes it.
    package var sidecar: Sidecar?
    /// The kept column with the captions; nil: one that is called as such columns are.
    package var captionColumn: String?

    package init(_ form: Form) { self.form = form }

    /// Members of which each image has its own.
    package static let ownMember = "ext"

    /// Whether a name can be that of a member: ASCII letters and digits.
    package static func isMember(_ name: String) -> Bool {
        !name.isEmpty && name.utf8.count <= 16 && name != "json" && name != "txt"
            && name.utf8.allSatisfy {
                (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0)
                    || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
            }
    }
}

/// Whose lines are in shards.
package struct ShardBatch: Sendable {
    var id: String
    /// How images were changed before they were stored; empty: not.
    var images: String
    /// Lines of each file of the list; empty if it is one.
    var files: [Int]
    /// Milliseconds since 1970.
    var start: Int, end: Int

    /// * `chain`: the batch and its retries.
    package init(_ chain: BatchChain) {
        (id, files) = (chain.root.id, chain.root.listFiles)
        images = chain.root.options.variant?.transformerKey ?? ""
        (start, end) = (chain.root.created, chain.newest.ended)
    }
}

/// What a shard says of one line of the list.
package struct ShardSample: Sendable {
    /// img2dataset's words.
    package enum Status: String, Sendable {
        case success
        case failedToDownload = "failed_to_download"
        /// The bytes came, and are no image that is wanted.
        case failedToResize = "failed_to_resize"
    }

    package var status: Status
    /// Why there is no image.
    package var message: String?
    /// An object of JSON, for people: what stands beside the image.
    package var json: [UInt8]
    /// The same on one line, without its end: a row of the table.
    package var row: [UInt8]
    /// Nil if the list has no captions.
    package var caption: [UInt8]?

    package init(_ status: Status, _ message: String?, json: [UInt8], row: [UInt8], caption: [UInt8]?) {
        (self.status, self.message, self.json, self.row, self.caption) = (status, message, json, row, caption)
    }
}
