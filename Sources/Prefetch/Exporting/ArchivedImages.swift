internal import Glibc
internal import WebImage

/// The cache in a folder of shards: its images are in the archives alone once these are written (``ShardIndex``).
struct ArchivedImages: Sendable {
    /// What is noted while a shard is written.
    struct Notes: Sendable {
        fileprivate var index = ShardIndex()
        fileprivate var files: [CachedFile] = []
    }

    /// An image of a shard, and its file in the cache; nil: it is in a shard already, or a read-only cache has it.
    fileprivate struct CachedFile: Sendable {
        let key: CacheKey
        let file: (inode: UInt, length: Int)?
        /// Of its line in the shard.
        let place: Int
    }

    private let folder: ShardFolder
    private let images: ImageFiles

    /// Nil if the cache lies elsewhere, or may not be changed.
    init?(_ cache: DiskCache, at path: String, in folder: ShardFolder) {
        guard let own = PathText.status(path), let used = PathText.status(cache.directory), used.st_ino == own.st_ino,
            used.st_dev == own.st_dev, !cache.configuration.isReadOnly
        else { return nil }
        (self.folder, images) = (folder, cache.images)
    }

    /// Notes where an image will be in the archive.
    /// * `place`: of its line in the shard.
    func note(_ entry: CacheEntry, at offset: Int, ofLine place: Int, in notes: inout Notes) {
        guard let record = entry.knownRecord else { return }
        let content = record.original == nil ? nil : images.validators(of: entry)?.contentDigest
        notes.index.slots[place] = ShardIndex.Slot(entry.key, offset: offset, record, contentDigest: content)
        let file = entry.isElsewhere ? nil : (entry.inode, entry.size)
        notes.files.append(CachedFile(key: entry.key, file: file, place: place))
    }

    /// Writes where the images are in the archive that has, or will have, the name of its shard: before that, so that links to the old archive
    /// lead to the new one then.
    /// * `new`: the archive that will have it; nil: the one that has it stays.
    /// * `count`: lines of the shard.
    /// - Throws: `inputOutput` (74).
    func writeIndex(_ notes: Notes, of shard: String, new: TemporaryFile?, count: Int) throws(PrefetchError) {
        if let new { return try folder.put(notes.index, of: shard, new.descriptor, count: count) }
        try putIndex(notes.index, of: shard, count: count)
    }

    /// * `index`: of the archive that has the name.
    private func putIndex(_ index: ShardIndex, of shard: String, count: Int) throws(PrefetchError) {
        guard let archive = folder.file(shard + ".tar") else { throw folder.failed(shard + ".tar", errno) }
        defer { close(archive) }
        try folder.put(index, of: shard, archive, count: count)
    }

    /// Whether the cache has links in the place of all images of a shard.
    func isReplaced(_ shard: String) -> Bool {
        guard let archive = folder.file(shard + ".tar") else { return false }
        defer { close(archive) }
        guard let identity = ShardIndex.identity(of: archive),
            let index = folder.file(ShardIndex.name(shard, file: identity))
        else { return false }
        defer { close(index) }
        return ShardIndex.isReplaced(index)
    }

    /// Puts links in the place of the images of a shard that is written: from now on they are in its archive alone.
    /// * `count`: lines of the shard.
    /// - Throws: `inputOutput` (74).
    func replace(_ notes: Notes, of shard: String, count: Int) throws(PrefetchError) {
        for file in notes.files {
            do throws(WebImageError) {
                try images.link(file.key, toShard: shard, file.place, replacing: file.file)
            } catch {
                throw PrefetchError(.inputOutput, error.message, hint: "make room, and run it again")
            }
        }
        var index = notes.index
        index.isReplaced = true
        try putIndex(index, of: shard, count: count)
    }

    /// Removes the indexes of the archives that had the name of a shard before.
    func removeOldIndexes(of shard: String) {
        guard let archive = folder.file(shard + ".tar") else { return }
        defer { close(archive) }
        guard let identity = ShardIndex.identity(of: archive) else { return }
        for old in folder.names() where ShardIndex.isName(old, of: shard) {
            if old != ShardIndex.name(shard, file: identity) { folder.delete(old) }
        }
    }
}

extension ShardFolder {
    /// Puts an index of the images of an open archive beside it.
    /// * `count`: lines of the shard.
    /// - Throws: `inputOutput` (74).
    func put(_ index: ShardIndex, of shard: String, _ archive: Int32, count: Int) throws(PrefetchError) {
        guard let identity = ShardIndex.identity(of: archive) else { throw failed(shard + ".tar", errno) }
        try put(
            index.bytes(count: count, file: identity), as: ShardIndex.name(shard, file: identity), replaces: true)
    }
}
