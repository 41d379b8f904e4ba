/// How far a list is known.
struct ListExtent: Sendable, Equatable {
    /// Entries that were read.
    var entries: Int
    /// Entries of each file that was read to its end; empty if the list is one file.
    var files: [Int]
    /// Whether there are no more.
    var hasEnded: Bool
}

extension ListExtent {
    init(_ reading: ListStream.Reading) {
        self.init(entries: reading.total, files: reading.parts.map(\.total), hasEnded: reading.hasEnded)
    }
}

/// How lines are spread over shards, and what they are called: as img2dataset 1.47 does it, so that what reads its results reads these. A shard is
/// a range of lines and ends at the end of each file of the list; the key of a line is the number of its shard, followed by its place in the shard.
struct ShardLayout: Sendable {
    struct Shard: Sendable, Equatable {
        var number: Int
        /// Among the entries of the list.
        var entries: Range<Int>
    }

    private static let shardDigits = 5

    private let perShard: Int
    /// Of the shards of the list's files, one each; nil: they follow each other.
    private let numbers: [Int]?
    private let indexDigits: Int
    private var number = 0
    private var start = 0
    /// Files that have ended before `start`, and their entries.
    private var file = 0, fileStart = 0

    /// * `perShard`: lines, at least 1.
    /// * `numbers`: of shards that are written again, of which each file of the list has the lines of one.
    init(perShard: Int, numbers: [Int]? = nil) {
        self.perShard = max(1, perShard)
        self.numbers = numbers
        var (digits, limit) = (0, 1)
        while limit < self.perShard { (digits, limit) = (digits + 1, limit * 10) }
        indexDigits = digits
    }

    /// The next shard; nil if it is not known yet which lines it has, or if there is none.
    /// * `list`: never less than before.
    mutating func next(of list: ListExtent) -> Shard? {
        while file < list.files.count, fileStart + list.files[file] <= start {
            fileStart += list.files[file]
            file += 1
        }
        // The last shard ends with the list.
        let limit = file < list.files.count ? fileStart + list.files[file] : list.hasEnded ? list.entries : Int.max
        let end = min(start + perShard, limit)
        guard end > start, end <= list.entries else { return nil }
        defer { (number, start) = (number + 1, end) }
        return Shard(number: numbers.flatMap { file < $0.count ? $0[file] : nil } ?? number, entries: start..<end)
    }

    /// `00007`.
    static func name(_ shard: Int) -> String { padded(shard, shardDigits) }

    /// `000070042`: a number, unique over all shards.
    func key(_ shard: Shard, at index: Int) -> String {
        let scale = (0..<indexDigits).reduce(1) { scale, _ in scale * 10 }
        let place = index - shard.entries.lowerBound
        return Self.padded(shard.number * scale + place, Self.shardDigits + indexDigits)
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

    /// A column that is made of the images.
    package enum Added: String, Sendable, CaseIterable {
        case perceptualHash = "image_phash"
        case duplicateOf = "duplicate_of"
    }

    /// The column of a table behind which are those that were added.
    private static let last = "stored_sha256"

    /// Those among the columns of a table.
    static func added(_ columns: [String]) -> [Added] {
        let behind = columns.drop { !$0.hasBytes(of: last) }
        return Added.allCases.filter { column in behind.contains { $0.hasBytes(of: column.rawValue) } }
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
    /// Columns behind the others, in their order.
    package var added: [Added] = []
    /// The shards that are written again, of each of which the list has a file; nil: all of the list are written.
    package var numbers: [Int]?
    /// Whether files of other writers are replaced.
    package var replaces = false

    package init(_ form: Form) { self.form = form }

    var layout: ShardLayout { ShardLayout(perShard: perShard, numbers: numbers) }

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
    /// Its id and nonce: another batch may have the same name.
    var id: String
    /// How images were changed before they were stored; empty: not.
    var images: String
    /// Milliseconds since 1970; nil: not over yet.
    var start: Int, end: Int?

    /// * `chain`: the batch and its retries.
    package init(_ chain: BatchChain) {
        id = chain.root.identity.text
        images = chain.root.options.variant?.transformerKey ?? ""
        (start, end) = (chain.root.created, chain.newest.ended > 0 ? chain.newest.ended : nil)
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
        /// The image is there, of another line of the shard.
        case duplicate
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

/// What the shards of a list say of its lines.
package struct ShardForm: Sendable {
    /// Of the table, in their order.
    package var columns: [TypedColumn]
    /// The list's column with the captions; nil if it has none.
    package var caption: String?
    /// Makes what is said of a line with a key; nothing in it may differ from one time to the next.
    package var sample: @Sendable (ExportedLine, _ key: String) -> ShardSample

    package init(
        _ columns: [TypedColumn], caption: String?,
        sample: @escaping @Sendable (ExportedLine, _ key: String) -> ShardSample
    ) {
        (self.columns, self.caption, self.sample) = (columns, caption, sample)
    }
}
