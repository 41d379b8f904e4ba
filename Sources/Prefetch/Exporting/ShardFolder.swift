internal import Glibc
internal import WebImage

/// A folder of shards.
final class ShardFolder: ShardPlace {
    let path: String
    private let folder: OpenFolder

    var shown: String { path }

    /// Nil with `errno`.
    init?(_ path: String) {
        guard let folder = OpenFolder(path) else { return nil }
        (self.path, self.folder) = (path, folder)
    }

    /// Opens one, and creates it with its parents.
    /// - Throws: `cacheUnavailable` (73).
    static func make(_ path: String) throws(PrefetchError) -> ShardFolder {
        guard ImageFolder.make(path), let folder = ShardFolder(path) else { throw ImageFolder.refused(path, errno) }
        return folder
    }

    /// - Throws: `cacheUnavailable` (73) if no file can be put into it.
    func checkAccess() throws(PrefetchError) {
        guard TemporaryFile(in: folder) != nil else { throw ImageFolder.refused(path, errno) }
    }

    // MARK: What is there

    /// The names in it; none if it cannot be read.
    func names() -> [String] { folder.names() }

    /// Bytes of a file; nil if there is none.
    func size(of name: String) -> Int? { folder.size(of: name) }

    /// The beginning of a file; nil if there is none.
    func bytes(of name: String, most: Int) -> [UInt8]? { folder.bytes(of: name, most: most) }

    /// Opens a file for reading, and for the caller to close; nil with `errno`.
    func file(_ name: String) -> Int32? { folder.file(name) }

    /// Whether a file has the bytes of another one.
    func has(_ name: String, sameAs other: TemporaryFile) -> Bool {
        guard let file = file(name) else { return false }
        defer { close(file) }
        var (own, known) = (stat(), stat())
        guard fstat(file, &own) == 0, fstat(other.descriptor, &known) == 0, own.st_mode & S_IFMT == S_IFREG,
            own.st_size == known.st_size
        else { return false }
        if own.st_ino == known.st_ino, own.st_dev == known.st_dev { return true }
        var (one, two) = ([UInt8](repeating: 0, count: 1 << 18), [UInt8](repeating: 0, count: 1 << 18))
        var offset = 0
        while offset < Int(own.st_size) {
            let count = pread(file, &one, one.count, off_t(offset))
            guard count > 0, pread(other.descriptor, &two, count, off_t(offset)) == count,
                one[..<count] == two[..<count]
            else { return false }
            offset += count
        }
        return true
    }

    // MARK: What is put

    /// A file to be put.
    /// * `name`: what it will be called, for messages.
    /// - Throws: `inputOutput` (74).
    func newFile(_ name: String) throws(PrefetchError) -> TemporaryFile {
        guard let file = TemporaryFile(in: folder) else { throw failed(name, errno) }
        return file
    }

    /// Gives a file its name: it is there whole, and on the disk when this returns.
    /// * `replaces`: whether another file of the name is replaced.
    /// - Throws: `cacheUnavailable` if another file has the name, `inputOutput` (74).
    func put(_ file: TemporaryFile, as name: String, replaces: Bool) throws(PrefetchError) {
        guard fsync(file.descriptor) == 0 else { throw failed(name, errno) }
        let code = replaces ? file.publish(replacing: name) : file.publish(as: name)
        if code == EEXIST {
            // Another run of the same list may have put it since it was looked for.
            if has(name, sameAs: file) { return }
            throw ImageFolder.taken("\(path)/\(name)")
        }
        guard code == 0 else { throw failed(name, code) }
        guard fsync(folder.descriptor) == 0 else { throw failed(name, errno) }
    }

    /// Deletes a file; one that is not there, or stays, does no harm.
    func delete(_ name: String) { unlinkat(folder.descriptor, name, 0) }

    func failed(_ name: String, _ code: Int32) -> PrefetchError {
        PrefetchError(
            .inputOutput, "cannot write \(path)/\(name): \(String(cString: strerror(code)))",
            hint: "make room, and run it again: complete shards stay, the rest is added")
    }
}
