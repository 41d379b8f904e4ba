internal import FoundationEssentials
internal import Glibc
internal import Threading
package import WebImage

/// A folder of shards in img2dataset's layout (``ShardLayout``): archives `00000.tar` as WebDataset reads them, of each image a file of its bytes, one of JSON
/// and, if there are captions, one of text under the same key; beside each a table of all its lines, `00000.parquet`, and `00000_stats.json`. Or
/// tables that have the images in them, and no archives. The same images make the same bytes.
///
/// A file has its name only when it is complete, and a shard its stats only when all its files have theirs; before the first of them has, a
/// hidden file of the same text says whose they will be. What is there stays, unless one of the two says that it is of the same batch, with
/// no more images than there are now.
package final class ImageShards: Sendable {
    package struct Tally: Sendable, Equatable {
        /// Shards, how many of them are new or have new files, and how many stayed because they have images that the cache has lost.
        package var shards = 0, new = 0, kept = 0
        package var images = 0
        /// Lines whose image another line of their shard has.
        package var duplicates = 0
    }

    private struct Shard: Sendable {
        let number: Int
        /// Index of its first line, and how many it has.
        let first: Int, count: Int
        let columns: [TypedColumn]
        let archive: TemporaryFile?
        /// Of JSON.
        let rows: TemporaryFile
        /// Of the images whose cache lies in the place.
        var notes = ArchivedImages.Notes()
        /// Where the first image with some bytes is, if such are kept once.
        var firsts: [Digest: First] = [:]
        var stats: ShardStats
        /// Of the lines so far.
        var lines = SHA256()
        /// Bytes of the archive, and of the longest row.
        var size = 0, longestRow = 0
        var published = Published()
    }

    /// A shard whose files have their names, but for its stats.
    private struct Published: Sendable {
        /// Whether the files stayed as they were because they have more images, and whether one of them is new.
        var isKept = false, isNew = false
        /// What is still to be put: the stats; nil: nothing.
        var stats: [UInt8]?
        /// Whether stats that are there are replaced.
        var replaces = false
        /// What was put.
        var files: [(file: TemporaryFile, name: String)] = []
    }

    /// The line that keeps an image, and where it is in the archive.
    private struct First: Sendable {
        let key: String
        let offset: Int
    }

    private struct State: Sendable {
        var tally = Tally()
        /// The one that is being written.
        var shard: Shard?
    }

    package let path: String
    let options: ShardOptions
    private let place: any ShardPlace
    private let member: String
    private let writer: ParquetProgram?
    private let batch: ShardBatch
    /// The cache, if it lies in this place.
    private let archived: ArchivedImages?
    private let state = Locked(State())

    /// Checks that a folder can be written, and that there is a program for what is wanted; creates it with its parents.
    /// - Returns: the program that writes the tables; nil: they are of JSON.
    /// - Throws: `cacheUnavailable` (73); `unreadableList` with what to install.
    @discardableResult
    package static func check(
        _ path: String, _ options: ShardOptions, notice: @escaping @Sendable (String) -> Void = { _ in }
    ) throws(PrefetchError) -> Bool {
        try ShardAddress.open(path, isPatient: false, notice: notice).checkAccess()
        return try writer(options) != nil
    }

    private static func writer(_ options: ShardOptions) throws(PrefetchError) -> ParquetProgram? {
        guard options.form == .webDataset, options.sidecar != .parquet else { return try ParquetProgram.find() }
        return options.sidecar == .jsonl ? nil : try? ParquetProgram.find()
    }

    /// The columns that were added to the shards of a place.
    package static func added(in path: String) -> [ShardOptions.Added] {
        guard let place = try? ShardAddress.open(path, isPatient: false),
            let name = try? place.names().filter({ $0.hasSuffix(statsName("")) }).min(),
            let stats = try? place.bytes(of: name, most: 1 << 20).flatMap({ ShardStats($0) })
        else { return [] }
        // Each has its type behind it.
        return ShardOptions.added(stats.columns.map { String($0[..<($0.lastIndex(of: " ") ?? $0.endIndex)]) })
    }

    /// The cache of a folder of shards whose images are in the archives alone once these are written.
    package static func cache(in path: String) -> String { path + "/.prefetch" }

    /// * `member`: what images are called; `cache`: where they are; `notice`: called with a sentence when a bucket is asked again.
    /// - Throws: as ``check(_:_:)``.
    package init(
        path: String, _ options: ShardOptions, member: String, of batch: ShardBatch, from cache: DiskCache,
        notice: @escaping @Sendable (String) -> Void = { _ in }
    ) throws(PrefetchError) {
        (self.path, self.options, self.member, self.batch) = (path, options, member, batch)
        place = try ShardAddress.open(path, notice: notice)
        if options.form == .webDataset, let folder = place as? ShardFolder {
            archived = ArchivedImages(cache, at: Self.cache(in: path), in: folder)
        } else {
            archived = nil
        }
        writer = try Self.writer(options)
    }

    package var tally: Tally { state.withLock { $0.tally } }
    /// Whether the tables are Parquet.
    package var hasParquet: Bool { writer != nil }

    /// Compares what is there with what was put.
    /// - Throws: `inputOutput` (74).
    func checkStored() throws(PrefetchError) { try place.checkStored() }

    /// Ends what takes long; nothing is put afterwards.
    func cancel() { place.cancel() }

    // MARK: A shard

    /// Whether a shard is there, whole, as it would be written again; it is counted then.
    /// * `images`: how many of its lines have one.
    /// * `columns`: of its table; nil: any.
    /// - Throws: `inputOutput` (74).
    func has(_ shard: ShardLayout.Shard, images: Int, columns: [TypedColumn]?) throws(PrefetchError) -> Bool {
        let name = ShardLayout.name(shard.number)
        var (wanted, files) = (emptyStats, [name + tableEnding])
        if let columns { wanted.columns = Self.texts(tableColumns(columns)) }
        if options.form == .webDataset { files.append(name + ".tar") }
        guard options.form != .tables, let known = try knownStats(Self.statsName(name)), known.isOfShard(of: wanted),
            known.count == shard.entries.count, known.successes + known.duplicates == images,
            columns == nil || known.columns == wanted.columns
        else { return false }
        for file in files where try place.size(of: file) == nil { return false }
        // A writer of other stats that was killed has left the mark: files may be of either.
        guard archived?.isReplaced(name) != false,
            try knownStats(Self.markName(name)).map({ $0.hasCounts(of: known) }) != false
        else { return false }
        count(shard.number) { tally in
            tally.images += known.successes
            tally.duplicates += known.duplicates
        }
        return true
    }

    /// Begins a shard; one that was begun and not completed is given up.
    /// * `columns`: of its table, in their order.
    /// - Throws: `inputOutput` (74).
    func begin(_ shard: ShardLayout.Shard, _ columns: [TypedColumn]) throws(PrefetchError) {
        let (name, columns) = (ShardLayout.name(shard.number), tableColumns(columns))
        var stats = emptyStats
        stats.columns = Self.texts(columns)
        let begun = Shard(
            number: shard.number, first: shard.entries.lowerBound, count: shard.entries.count, columns: columns,
            archive: options.form == .webDataset ? try place.newFile(name) : nil, rows: try place.newFile(name),
            stats: stats)
        state.withLock { $0.shard = begun }
    }

    /// Adds the next line to the shard that was begun.
    /// * `entry`: its image; nil if it has none.
    /// * `form`: what is said of it.
    /// - Throws: `inputOutput` (74).
    func add(
        _ entry: CacheEntry?, of line: ExportedLine, _ key: String, _ form: ShardForm
    ) throws(PrefetchError) {
        // Taken, not copied: what it has grows with each line.
        guard var shard = state.withLock({ $0.shard.take() }) else { return }
        var line = line
        let first = if let entry { try keeper(of: entry, key, &shard) } else { nil as First? }
        line.duplicateOf = first?.key
        let sample = form.sample(line, key)
        shard.stats.add(sample)
        var text = Array("\(line.result.url)\n".utf8)
        for (name, value) in (line.result.columns ?? [:]).sorted(by: { ByteText($0.key) < ByteText($1.key) }) {
            text += Array("\(name)\0\(value.text)\n".utf8)
        }
        text.withUnsafeBytes { shard.lines.update($0) }
        if let entry, shard.archive != nil {
            if let first {
                archived?.note(
                    entry, at: first.offset, ofLine: line.result.index - shard.first, in: &shard.notes)
            } else {
                try archive(entry, of: line.result.index, key, sample, &shard)
            }
        }
        try row(first == nil ? entry : nil, sample, &shard)
        state.withLock { [shard] in $0.shard = shard }
    }

    /// Gives the files of the shard that was begun their names: all but the stats, which say that it is whole.
    /// - Returns: bytes of its files.
    /// - Throws: `cacheUnavailable` where another file has the name of one of its files, `inputOutput` (74).
    func put() throws(PrefetchError) -> Int {
        guard var shard = state.withLock({ $0.shard }) else { return 0 }
        let lines = shard.lines
        shard.stats.lines = lines.finalize().hex
        let files = try files(of: shard)
        for isLast in [false, true] {
            do throws(PrefetchError) {
                shard.published = try publish(shard, files)
                break
            } catch {
                // Another run of the list, with a Redis of its own, may have written it meanwhile.
                guard error.kind == .cacheUnavailable, !isLast, try isBegun(shard) else { throw error }
            }
        }
        state.withLock { [shard] in $0.shard = shard }
        return try bytes(of: shard.number)
    }

    /// Names the shard as whole whose files were put.
    /// - Throws: `inputOutput` (74).
    func complete() throws(PrefetchError) {
        guard let shard = state.withLock({ $0.shard }) else { return }
        let (name, end) = (ShardLayout.name(shard.number), shard.published)
        if let stats = end.stats {
            // Another run may have found the shard recorded, and not complete.
            let isOwn = try knownStats(Self.statsName(name))?.isOfShard(of: shard.stats) == true
            do throws(PrefetchError) {
                try place.put(stats, as: Self.statsName(name), replaces: end.replaces || isOwn)
            } catch {
                // Another run, with a Redis of its own, has been faster; its stats have other times.
                guard error.kind == .cacheUnavailable,
                    try knownStats(Self.statsName(name))?.isOfShard(of: shard.stats) == true
                else { throw error }
                if let other = try otherFile(among: end.files) { throw conflict(other) }
                try place.put(stats, as: Self.statsName(name), replaces: true)
            }
            if let other = try otherFile(among: end.files) {
                place.delete(Self.statsName(name))
                throw conflict(other)
            }
            if end.replaces { archived?.removeOldIndexes(of: name) }
        }
        if !end.isKept { try archived?.replace(shard.notes, of: name, count: shard.count) }
        state.withLock { $0.shard = nil }
        count(shard.number, isKept: end.isKept) { tally in
            tally.images += shard.stats.successes
            tally.duplicates += shard.stats.duplicates
            if end.isKept { tally.kept += 1 }
            if end.isNew { tally.new += 1 }
        }
    }

    /// The name of a file that a run which does not share this one's Redis has put meanwhile.
    private func otherFile(among files: [(file: TemporaryFile, name: String)]) throws(PrefetchError) -> String? {
        for file in files where try !place.has(file.name, sameAs: file.file) { return file.name }
        return nil
    }

    private func conflict(_ file: String) -> PrefetchError {
        PrefetchError(
            .inputOutput, "another run has written \(place.shown)/\(file) at the same time",
            hint: "end one of the two and run this again; runs on several machines share a Redis")
    }

    /// Bytes of the files of a shard.
    /// - Throws: `inputOutput` (74).
    func bytes(of shard: Int) throws(PrefetchError) -> Int {
        let name = ShardLayout.name(shard)
        var stats = try place.size(of: Self.statsName(name))
        if stats == nil { stats = try place.size(of: Self.markName(name)) }
        var sum = stats ?? 0
        for file in [name + ".tar", name + tableEnding] { sum += try place.size(of: file) ?? 0 }
        return sum
    }

    /// Counts a shard. If it is whole, nothing has to say any more whose files it will have.
    private func count(_ shard: Int, isKept: Bool = false, _ body: (inout Tally) -> Void) {
        let name = ShardLayout.name(shard)
        if options.form != .tables, !isKept { place.delete(Self.markName(name)) }
        state.withLock { state in
            state.tally.shards += 1
            body(&state.tally)
        }
    }

    private var emptyStats: ShardStats { ShardStats(batch, perShard: options.perShard) }
    private var tableEnding: String { writer == nil ? ".jsonl" : ".parquet" }

    private func tableColumns(_ columns: [TypedColumn]) -> [TypedColumn] {
        columns + (options.form == .parquet ? [TypedColumn(member, .bytes)] : [])
    }

    private static func texts(_ columns: [TypedColumn]) -> [String] { columns.map { "\($0.name) \($0.kind.rawValue)" } }

    // MARK: A line

    /// The line before that has the image, if such are kept once; the first one is noted.
    private func keeper(of entry: CacheEntry, _ key: String, _ shard: inout Shard) throws(PrefetchError) -> First? {
        guard options.added.contains(.duplicateOf) else { return nil }
        do throws(WebImageError) {
            let digest = try entry.knownDigest()
            if let first = shard.firsts[digest] { return first }
            shard.firsts[digest] = First(key: key, offset: shard.size + TarHeader.blockSize)
        } catch {
            throw PrefetchError(.inputOutput, error.message)
        }
        return nil
    }

    private func archive(
        _ entry: CacheEntry, of line: Int, _ key: String, _ sample: ShardSample, _ shard: inout Shard
    ) throws(PrefetchError) {
        guard let file = shard.archive else { return }
        let name = ShardLayout.name(shard.number) + ".tar"
        func put(_ member: String, _ bytes: [UInt8]) throws(PrefetchError) {
            let all = TarHeader.bytes("\(key).\(member)", size: bytes.count) + bytes + TarHeader.padding(bytes.count)
            try place.write(all, to: file, name)
            shard.size += all.count
        }
        let image = member == ShardOptions.ownMember ? entry.format.fileExtension : member
        archived?.note(
            entry, at: shard.size + TarHeader.blockSize, ofLine: line - shard.first, in: &shard.notes)
        try place.write(TarHeader.bytes("\(key).\(image)", size: entry.size), to: file, name)
        let code = entry.copy(to: file.descriptor)
        guard code == 0 else { throw place.failed(name, code) }
        let padding = TarHeader.padding(entry.size)
        try place.write(padding, to: file, name)
        shard.size += TarHeader.blockSize + entry.size + padding.count
        try put("json", sample.json)
        if let caption = sample.caption { try put("txt", caption) }
    }

    private func row(
        _ entry: CacheEntry?, _ sample: ShardSample, _ shard: inout Shard
    ) throws(PrefetchError) {
        var row = sample.row
        if options.form == .parquet {
            row.removeLast()
            row += Array(",\"\(member)\":".utf8)
            if let entry {
                let bytes: [UInt8]
                do throws(WebImageError) { bytes = try entry.bytes() } catch {
                    throw PrefetchError(.inputOutput, error.message)
                }
                row += Array("\"\(Data(bytes).base64EncodedString())\"".utf8)
            } else {
                row += Array("null".utf8)
            }
            row.append(UInt8(ascii: "}"))
        }
        row.append(UInt8(ascii: "\n"))
        shard.longestRow = max(shard.longestRow, row.count)
        try place.write(row, to: shard.rows, ShardLayout.name(shard.number))
    }

    // MARK: Names

    /// Whether stats say that it is there, or being written.
    private func isBegun(_ shard: Shard) throws(PrefetchError) -> Bool {
        let name = ShardLayout.name(shard.number)
        for known in [Self.statsName(name), Self.markName(name)] {
            if try knownStats(known)?.isOfShard(of: shard.stats) == true { return true }
        }
        return false
    }

    /// The archive and the table of a shard that has all its lines.
    private func files(of shard: Shard) throws(PrefetchError) -> [(file: TemporaryFile, name: String)] {
        let name = ShardLayout.name(shard.number)
        var files: [(file: TemporaryFile, name: String)] = []
        if let archive = shard.archive {
            try place.write(TarHeader.end(shard.size), to: archive, name)
            files.append((archive, name + ".tar"))
        }
        files.append(
            (
                try writer.map { writer throws(PrefetchError) in try table(of: shard, by: writer, name) } ?? shard.rows,
                name + tableEnding
            ))
        return files
    }

    private func publish(
        _ shard: Shard, _ files: [(file: TemporaryFile, name: String)]
    ) throws(PrefetchError) -> Published {
        let name = ShardLayout.name(shard.number)
        let (stats, mark) = (Self.statsName(name), Self.markName(name))
        var known = try knownStats(stats)
        if known?.isOfShard(of: shard.stats) != true {
            if known != nil, !options.replaces { throw ImageFolder.taken("\(path)/\(stats)") }
            known = nil
        }
        if let known, options.form != .tables,
            known.successes + known.duplicates > shard.stats.successes + shard.stats.duplicates
        {
            return Published(isKept: true)
        }
        var isOwn = options.replaces || known != nil
        if !isOwn { isOwn = try knownStats(mark)?.isOfShard(of: shard.stats) == true }
        var new: [(file: TemporaryFile, name: String)] = []
        for file in files where try !place.has(file.name, sameAs: file.file) { new.append(file) }
        if !isOwn {
            let others = options.form == .tables ? [] : [stats, mark]
            for name in new.map(\.name) + others where try place.size(of: name) != nil {
                throw ImageFolder.taken("\(path)/\(name)")
            }
        }
        if let archived, let archive = shard.archive {
            try archived.writeIndex(
                shard.notes, of: name, new: new.contains { $0.file === archive } ? archive : nil, count: shard.count)
        }
        if options.form == .tables || (new.isEmpty && known?.hasCounts(of: shard.stats) == true) {
            for (file, name) in new { try place.put(file, as: name, replaces: isOwn) }
            return Published(isNew: !new.isEmpty)
        }
        try place.put(shard.stats.bytes, as: mark, replaces: isOwn)
        for (file, name) in new { try place.put(file, as: name, replaces: isOwn) }
        return Published(isNew: true, stats: shard.stats.bytes, replaces: isOwn, files: new)
    }

    /// The rows as Parquet.
    private func table(
        of shard: Shard, by writer: ParquetProgram, _ name: String
    ) throws(PrefetchError) -> TemporaryFile {
        let file = try place.newFile(name)
        guard lseek(shard.rows.descriptor, 0, SEEK_SET) == 0 else { throw place.failed(name, errno) }
        let code = try writer.write(
            shard.columns, rows: shard.rows.descriptor, longest: shard.longestRow, to: file.descriptor,
            called: "\(path)/\(name).parquet")
        guard code == 0 else { throw place.failed(name + ".parquet", code) }
        return file
    }

    private static func statsName(_ name: String) -> String { name + "_stats.json" }
    private static func markName(_ name: String) -> String { "." + statsName(name) }

    private func knownStats(_ name: String) throws(PrefetchError) -> ShardStats? {
        try place.bytes(of: name, most: 1 << 20).flatMap { ShardStats($0) }
    }
}
