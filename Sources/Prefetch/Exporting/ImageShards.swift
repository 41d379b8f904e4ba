internal import FoundationEssentials
internal import Glibc
internal import Threading
internal import WebImage

/// A folder of shards in img2dataset's layout (``ShardLayout``): archives `00000.tar` as WebDataset reads them, of each image a file of its bytes, one of JSON
/// and, if there are captions, one of text under the same key; beside each a table of all its lines, `00000.parquet`, and `00000_stats.json`. Or
/// tables that have the images in them, and no archives. The same images make the same bytes.
///
/// A file has its name only when it is complete, and a shard its stats only when all its files have theirs. What is there stays, unless
/// its stats say that it is a shard of the same batch with no more images than there are now.
package final class ImageShards: Sendable {
    package struct Tally: Sendable, Equatable {
        /// Shards, how many of them are new or have new files, and how many stayed because they have images that the cache has lost.
        package var shards = 0, new = 0, kept = 0
        package var images = 0
    }

    private struct Shard: Sendable {
        let number: Int
        let archive: TemporaryFile?
        /// Of JSON.
        let rows: TemporaryFile
        var stats: ShardStats
        /// Bytes of the archive, and of the longest row.
        var size = 0, longestRow = 0
    }

    private struct State: Sendable {
        var tally = Tally()
        var layout: ShardLayout
        /// Entries of the list that have a place.
        var placed = 0
        var shard: Shard?
    }

    package let path: String
    private let folder: OpenFolder
    private let options: ShardOptions
    private let member: String
    private let writer: ParquetProgram?
    private let columns: [TypedColumn]
    private let stats: ShardStats
    private let state: Locked<State>

    /// Checks that a folder can be written, and that there is a program for what is wanted; creates it with its parents.
    /// - Returns: the program that writes the tables; nil: they are of JSON.
    /// - Throws: `cacheUnavailable` (73); `unreadableList` with what to install.
    @discardableResult
    package static func check(_ path: String, _ options: ShardOptions) throws(PrefetchError) -> Bool {
        guard ImageFolder.make(path), let folder = OpenFolder(path), TemporaryFile(in: folder) != nil else {
            throw ImageFolder.refused(path, errno)
        }
        return try writer(options) != nil
    }

    private static func writer(_ options: ShardOptions) throws(PrefetchError) -> ParquetProgram? {
        guard options.form == .webDataset, options.sidecar != .parquet else { return try ParquetProgram.find() }
        return options.sidecar == .jsonl ? nil : try? ParquetProgram.find()
    }

    /// * `columns`: of the tables, in their order.
    /// * `member`: what images are called.
    /// - Throws: as ``check(_:_:)``.
    package init(
        path: String, _ options: ShardOptions, columns: [TypedColumn], member: String, of batch: ShardBatch
    ) throws(PrefetchError) {
        guard ImageFolder.make(path), let folder = OpenFolder(path) else { throw ImageFolder.refused(path, errno) }
        (self.path, self.folder, self.options, self.member) = (path, folder, options, member)
        writer = try Self.writer(options)
        self.columns = columns + (options.form == .parquet ? [TypedColumn(member, .bytes)] : [])
        stats = ShardStats(batch, perShard: options.perShard)
        state = Locked(State(layout: ShardLayout(perShard: options.perShard, files: batch.files)))
    }

    package var tally: Tally { state.withLock { $0.tally } }
    /// Whether the tables are Parquet.
    package var hasParquet: Bool { writer != nil }

    /// Adds a line.
    /// * `entry`: its image; nil if it has none.
    /// * `index`: its place in the list, larger than that of the line before; those in between are lost.
    /// * `sample`: makes of a key what is said of it.
    /// - Throws: `cacheUnavailable` where another file has the name of one of these, `inputOutput` (74).
    func add(_ entry: CacheEntry?, at index: Int, _ sample: (_ key: String) -> ShardSample) throws(PrefetchError) {
        var state = state.withLock { $0 }
        var place = state.layout.next()
        while state.placed < index {
            place = state.layout.next()
            state.placed += 1
        }
        state.placed += 1
        if let shard = state.shard, shard.number != place.shard { try close(&state) }
        var shard: Shard
        if let known = state.shard { shard = known } else { shard = try open(place.shard) }
        let key = state.layout.key(place)
        let sample = sample(key)
        shard.stats.add(sample)
        if let entry, shard.archive != nil { try archive(entry, key, sample, &shard) }
        try row(entry, sample, &shard)
        if entry != nil { state.tally.images += 1 }
        state.shard = shard
        self.state.withLock { [state] in $0 = state }
    }

    /// Completes the last shard.
    /// - Throws: as ``add(_:_:)``.
    func finish() throws(PrefetchError) {
        var state = state.withLock { $0 }
        try close(&state)
        self.state.withLock { [state] in $0 = state }
    }

    // MARK: A line

    private func open(_ number: Int) throws(PrefetchError) -> Shard {
        func file() throws(PrefetchError) -> TemporaryFile {
            guard let file = TemporaryFile(in: folder) else { throw failed(ShardLayout.name(number), errno) }
            return file
        }
        return Shard(
            number: number, archive: options.form == .webDataset ? try file() : nil, rows: try file(), stats: stats)
    }

    private func archive(
        _ entry: CacheEntry, _ key: String, _ sample: ShardSample, _ shard: inout Shard
    ) throws(PrefetchError) {
        guard let file = shard.archive else { return }
        let name = ShardLayout.name(shard.number) + ".tar"
        func put(_ member: String, _ bytes: [UInt8]) throws(PrefetchError) {
            let all = TarHeader.bytes("\(key).\(member)", size: bytes.count) + bytes + TarHeader.padding(bytes.count)
            try write(all, file, name)
            shard.size += all.count
        }
        let image = member == ShardOptions.ownMember ? entry.format.fileExtension : member
        try write(TarHeader.bytes("\(key).\(image)", size: entry.size), file, name)
        let code = entry.copy(to: file.descriptor)
        guard code == 0 else { throw failed(name, code) }
        let padding = TarHeader.padding(entry.size)
        try write(padding, file, name)
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
        try write(row, shard.rows, ShardLayout.name(shard.number))
    }

    private func write(_ bytes: [UInt8], _ file: TemporaryFile, _ name: String) throws(PrefetchError) {
        let code = OpenFile.write(bytes, to: file.descriptor)
        guard code == 0 else { throw failed(name, code) }
    }

    // MARK: A shard

    private func close(_ state: inout State) throws(PrefetchError) {
        guard let shard = state.shard else { return }
        state.shard = nil
        state.tally.shards += 1
        let name = ShardLayout.name(shard.number)
        let known = knownStats(name)
        let isOwn = known?.isOfShard(of: stats) == true
        if known != nil, !isOwn { throw ImageFolder.taken("\(path)/\(Self.statsName(name))") }
        if let known, isOwn, options.form != .tables, known.successes > shard.stats.successes {
            state.tally.kept += 1
            return
        }
        var isNew = false
        if let archive = shard.archive {
            try write(TarHeader.end(shard.size), archive, name)
            if try publish(archive, as: name + ".tar", isOwn: isOwn) { isNew = true }
        }
        if let writer {
            let table = try table(of: shard, by: writer, name)
            if try publish(table, as: name + ".parquet", isOwn: isOwn) { isNew = true }
        } else {
            if try publish(shard.rows, as: name + ".jsonl", isOwn: isOwn) { isNew = true }
        }
        if options.form != .tables, isNew || known?.hasCounts(of: shard.stats) != true {
            // The names of the other files are on the disk before this one is.
            guard fsync(folder.descriptor) == 0 else { throw failed(name, errno) }
            guard let file = TemporaryFile(in: folder) else { throw failed(name, errno) }
            try write(shard.stats.bytes, file, name)
            if try publish(file, as: Self.statsName(name), isOwn: isOwn) { isNew = true }
        }
        if isNew { state.tally.new += 1 }
    }

    /// The rows as Parquet.
    private func table(
        of shard: Shard, by writer: ParquetProgram, _ name: String
    ) throws(PrefetchError) -> TemporaryFile {
        guard let file = TemporaryFile(in: folder) else { throw failed(name, errno) }
        guard lseek(shard.rows.descriptor, 0, SEEK_SET) == 0 else { throw failed(name, errno) }
        let code = try writer.write(
            columns, rows: shard.rows.descriptor, longest: shard.longestRow, to: file.descriptor,
            called: "\(path)/\(name).parquet")
        guard code == 0 else { throw failed(name + ".parquet", code) }
        return file
    }

    /// Returns whether it was not there.
    private func publish(
        _ file: TemporaryFile, as name: String, isOwn: Bool
    ) throws(PrefetchError) -> Bool {
        guard fsync(file.descriptor) == 0 else { throw failed(name, errno) }
        var code = file.publish(as: name)
        if code == EEXIST {
            if folder.has(name, sameAs: file.descriptor) { return false }
            guard isOwn else { throw ImageFolder.taken("\(path)/\(name)") }
            code = file.publish(replacing: name)
        }
        guard code == 0 else { throw failed(name, code) }
        return true
    }

    private static func statsName(_ name: String) -> String { name + "_stats.json" }

    private func knownStats(_ name: String) -> ShardStats? {
        folder.bytes(of: Self.statsName(name), most: 1 << 20).flatMap { ShardStats($0) }
    }

    private func failed(_ name: String, _ code: Int32) -> PrefetchError {
        PrefetchError(
            .inputOutput, "cannot write \(path)/\(name): \(String(cString: strerror(code)))",
            hint: "make room, and run it again: complete shards stay, the rest is added")
    }
}
