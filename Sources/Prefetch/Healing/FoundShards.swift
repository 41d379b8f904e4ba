internal import Glibc
package import Queue
package import WebImage

/// A folder of shards as img2dataset or this program has left it: which lines have no image, and how they are fetched in addition.
package struct FoundShards: Sendable {
    package struct Plan: Sendable {
        package var shards = 0, lines = 0, images = 0
        /// Shards with lines without an image, or that were not completed.
        package var incomplete: [Int] = []
        /// Shards whose table is not there: nobody knows their lines.
        package var unknown: [Int] = []
        /// Why there is no image, with the number of lines; most first.
        package var reasons: [(text: String, count: Int)] = []
        /// What images are called behind their keys.
        package var member: String?
        /// What their tables are.
        package var sidecar: ShardOptions.Sidecar?
        /// Columns that were added to them.
        package var added: [ShardOptions.Added] = []
        /// Lines that a shard has at most.
        package var perShard = 0
        /// Images of another size than what was fetched, with one of them.
        package var resized = 0, example: (from: PixelSize, to: PixelSize)?
    }

    private let path: String
    private let folder: ShardFolder
    /// The names in it, by number.
    private let numbers: [Int]
    private let names: Set<ByteText>

    /// - Throws: `notFound` if it has no shards.
    package init(_ path: String) throws(PrefetchError) {
        guard let folder = ShardFolder(path) else { throw .file("open", path) }
        (self.path, self.folder) = (path, folder)
        let all = folder.names()
        names = Set(all.map { ByteText($0) })
        numbers = Set(
            all.compactMap { name in
                [".tar", ".parquet", ".jsonl"].contains { name.hasSuffix($0) }
                    ? Int(name.prefix { $0 != "." }) : nil
            }
        ).sorted()
        guard all.contains(where: { $0.hasSuffix(".tar") }) else {
            throw PrefetchError(
                .notFound, "\(PathText.shown(path)) has no archives of shards",
                hint: "name the folder with 00000.tar and 00000.parquet")
        }
    }

    private func has(_ name: String) -> Bool { names.contains(ByteText(name)) }

    /// The table of a shard; nil if it has none.
    private func table(_ number: Int) -> String? {
        let name = ShardLayout.name(number)
        return [".parquet", ".jsonl"].map { name + $0 }.first(where: has).map { "\(path)/\($0)" }
    }

    /// Reads all tables, and the heads of the members of all archives. Blocks.
    /// - Throws: `unreadableList` with the table.
    package func plan() throws(PrefetchError) -> Plan {
        var plan = Plan()
        var reasons: [ByteText: Int] = [:]
        for number in numbers {
            guard let table = table(number) else {
                plan.unknown.append(number)
                continue
            }
            let name = ShardLayout.name(number)
            let (rows, added) = try ShardRow.all(of: table)
            if plan.added.isEmpty { plan.added = added }
            let archive = folder.file(name + ".tar")
            defer { if let archive { close(archive) } }
            let images = archive.map { ShardArchive($0).images } ?? [:]
            var missing = 0
            for row in rows {
                if let image = images[ByteText(row.duplicateOf ?? row.key)] {
                    plan.member = plan.member ?? image.ending
                    if let size = row.size, let original = row.original, size != original {
                        plan.resized += 1
                        plan.example = (original, size)
                    }
                } else {
                    missing += 1
                    reasons[ByteText(String((row.message ?? "no image").prefix(60))), default: 0] += 1
                }
            }
            if let key = rows.first?.key { plan.perShard = max(plan.perShard, Self.perShard(key)) }
            plan.sidecar = plan.sidecar ?? (table.hasSuffix(".jsonl") ? .jsonl : .parquet)
            plan.shards += 1
            plan.lines += rows.count
            plan.images += rows.count - missing
            if !rows.isEmpty, missing > 0 || !has(name + "_stats.json") { plan.incomplete.append(number) }
        }
        plan.reasons = reasons.map { ($0.key.text, $0.value) }.sorted { ($1.count, $0.text) < ($0.count, $1.text) }
        return plan
    }

    /// By the digits of a key behind those of the shard.
    private static func perShard(_ key: String) -> Int {
        (0..<max(0, min(9, key.utf8.count - ShardLayout.name(0).utf8.count))).reduce(1) { scale, _ in scale * 10 }
    }

    /// Makes the images of a shard known to the cache in its folder, and writes its lines as a list. Each image is verified; one that is damaged
    /// is left out. Blocks.
    /// * `options`: of the batch that fetches the rest.
    /// * `list`: where its lines go.
    /// - Returns: how many images it has that are whole.
    /// - Throws: `unreadableList` if its keys are not those of its lines; `inputOutput`.
    package func adopt(
        _ number: Int, of plan: Plan, into images: ImageFiles, _ options: BatchOptions, list: String
    ) throws(PrefetchError) -> Int {
        guard let table = table(number) else { return 0 }
        let name = ShardLayout.name(number)
        let rows = try ShardRow.all(of: table).rows
        let shard = ShardLayout.Shard(number: number, entries: 0..<rows.count)
        let layout = ShardLayout(perShard: plan.perShard)
        for (place, row) in rows.enumerated() where layout.key(shard, at: place) != row.key {
            throw PrefetchError(
                .unreadableList, "the key \(row.key) of the shard \(name) is not that of its line \(place)",
                hint: "lines are missing in \(table): run their list again into another folder")
        }
        var text: [UInt8] = []
        for row in rows { text += row.line }
        let file = try OutputFile(path: list)
        try file.write(text)
        try file.commit()
        guard let descriptor = folder.file(name + ".tar") else { return 0 }
        defer { close(descriptor) }
        let archive = ShardArchive(descriptor)
        let (rule, coder) = (CacheKeyRule(options), ImageCoder())
        var index = ShardIndex()
        for (place, row) in rows.enumerated() {
            guard let member = archive.images[ByteText(row.duplicateOf ?? row.key)],
                let bytes = archive.bytes(member)
            else { continue }
            do throws(WebImageError) {
                let info = try bytes.span.withUnsafeBytes { bytes throws(WebImageError) in
                    try coder.verify(bytes, level: options.validate)
                }
                let isMade = row.original.map { $0 != row.size } ?? false
                let original = row.original.flatMap {
                    isMade ? OriginalImage(format: .unknown, width: $0.width, height: $0.height) : nil
                }
                let record = CacheRecord(
                    info, original: original, length: bytes.count, digest: SHA256.hash(bytes),
                    storedAt: Int(WallClock.now))
                index.slots[place] = ShardIndex.Slot(
                    CacheKey(try rule.key(for: row.url)), offset: member.offset, record,
                    contentDigest: isMade ? row.contentDigest : nil)
            } catch {
                // Damaged images are fetched again.
                guard error.code == .localFault || error.code == .cancelled else { continue }
                throw PrefetchError(.inputOutput, error.message)
            }
        }
        try folder.put(index, of: name, descriptor, count: rows.count)
        for (place, slot) in index.slots {
            do throws(WebImageError) { try images.link(slot.key, toShard: name, place, replacing: nil) } catch {
                throw PrefetchError(.inputOutput, error.message)
            }
        }
        return index.slots.count
    }
}
