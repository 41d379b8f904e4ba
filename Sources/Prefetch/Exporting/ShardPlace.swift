internal import WebImage

/// Where shards are put: a folder or a bucket. Files are put into it whole, listed, read and deleted, and nothing else is done to it.
///
/// All of these may block, and throw `inputOutput` (74) where the place cannot be asked.
protocol ShardPlace: Sendable {
    /// For messages.
    var shown: String { get }

    /// - Throws: `cacheUnavailable` (73) if no file can be put into it.
    func checkAccess() throws(PrefetchError)

    /// The names in it.
    func names() throws(PrefetchError) -> [String]

    /// Bytes of a file; nil if there is none.
    func size(of name: String) throws(PrefetchError) -> Int?

    /// The beginning of a file; nil if there is none.
    func bytes(of name: String, most: Int) throws(PrefetchError) -> [UInt8]?

    /// Whether a file has the bytes of another one.
    func has(_ name: String, sameAs other: TemporaryFile) throws(PrefetchError) -> Bool

    /// A file to be put.
    /// * `name`: what it will be called, for messages.
    func newFile(_ name: String) throws(PrefetchError) -> TemporaryFile

    /// Gives a file its name: it is there whole, and stays there whatever is killed, when this returns.
    /// * `replaces`: whether another file of the name is replaced.
    /// - Throws: `cacheUnavailable` if another file has the name.
    func put(_ file: TemporaryFile, as name: String, replaces: Bool) throws(PrefetchError)

    /// Deletes a file; one that is not there, or stays, does no harm.
    func delete(_ name: String)

    /// Looks whether what was found to have the bytes of its file is still there.
    func checkStored() throws(PrefetchError)

    /// A file that is to be put could not be written.
    /// * `code`: an errno.
    func failed(_ name: String, _ code: Int32) -> PrefetchError

    /// Ends within a few seconds what takes longer; nothing can be put afterwards.
    func cancel()
}

extension ShardPlace {
    func checkStored() throws(PrefetchError) {}

    func cancel() {}

    func write(_ bytes: [UInt8], to file: TemporaryFile, _ name: String) throws(PrefetchError) {
        let code = OpenFile.write(bytes, to: file.descriptor)
        guard code == 0 else { throw failed(name, code) }
    }

    /// - Throws: as ``put(_:as:replaces:)-(TemporaryFile,_,_)``.
    func put(_ bytes: [UInt8], as name: String, replaces: Bool) throws(PrefetchError) {
        let file = try newFile(name)
        try write(bytes, to: file, name)
        try put(file, as: name, replaces: replaces)
    }
}
