internal import Glibc
internal import Threading
internal import WebImage

/// A folder of tar archives `000000.tar`, `000001.tar` …, as WebDataset reads them: of each image a file of its bytes, one of JSON
/// and, if there are captions, one of text under the same key. The same images make the same archives, byte for byte. An archive has its name only when it is complete, and none that
/// is there is overwritten.
package final class ImageShards: Sendable {
    package struct Tally: Sendable, Equatable {
        /// Archives, and how many of them are new.
        package var shards = 0, new = 0
        package var images = 0
    }

    private struct State: Sendable {
        var tally = Tally()
        var file: TemporaryFile?
        var images = 0
        var size = 0
    }

    package let path: String
    private let folder: OpenFolder
    private let perShard: Int
    private let state = Locked(State())

    /// Opens a folder, and creates it with its parents.
    /// * `perShard`: images per archive.
    /// - Throws: `cacheUnavailable` (73) if it cannot be created or written to.
    package init(path: String, perShard: Int) throws(PrefetchError) {
        self.path = path
        self.perShard = max(1, perShard)
        guard ImageFolder.make(path), let folder = OpenFolder(path), TemporaryFile(in: folder) != nil else {
            throw ImageFolder.refused(path, errno)
        }
        self.folder = folder
    }

    package var tally: Tally { state.withLock { $0.tally } }

    /// Adds an image.
    ///
    /// * `key`: without a dot: what is behind the first one tells the parts of a sample apart.
    /// * `json`: what is known of it.
    /// * `caption`: what its file of text has; nil: there is none.
    /// - Throws: `cacheUnavailable` where another file has the archive's name, `inputOutput` (74).
    func add(
        _ entry: CacheEntry, key: String, json: [UInt8], caption: [UInt8]? = nil
    ) throws(PrefetchError) {
        var state = state.withLock { $0 }
        if state.file == nil {
            guard let file = TemporaryFile(in: folder) else { throw failed(state, errno) }
            (state.file, state.images, state.size) = (file, 0, 0)
        }
        guard let file = state.file else { return }
        func write(_ bytes: [UInt8]) throws(PrefetchError) {
            let code = OpenFile.write(bytes, to: file.descriptor)
            guard code == 0 else { throw failed(state, code) }
            state.size += bytes.count
        }
        try write(TarHeader.bytes("\(key).\(entry.format.fileExtension)", size: entry.size))
        let code = entry.copy(to: file.descriptor)
        guard code == 0 else { throw failed(state, code) }
        state.size += entry.size
        try write(TarHeader.padding(entry.size) + TarHeader.bytes("\(key).json", size: json.count) + json)
        try write(TarHeader.padding(json.count))
        if let caption {
            try write(TarHeader.bytes("\(key).txt", size: caption.count) + caption)
            try write(TarHeader.padding(caption.count))
        }
        state.images += 1
        state.tally.images += 1
        if state.images == perShard { try close(&state) }
        self.state.withLock { [state] in $0 = state }
    }

    /// Completes the last archive.
    /// - Throws: as ``add(_:key:json:caption:)``.
    func finish() throws(PrefetchError) {
        var state = state.withLock { $0 }
        try close(&state)
        self.state.withLock { [state] in $0 = state }
    }

    private func close(_ state: inout State) throws(PrefetchError) {
        guard let file = state.file else { return }
        let name = Self.name(state)
        var code = OpenFile.write(TarHeader.end(state.size), to: file.descriptor)
        if code == 0, fsync(file.descriptor) != 0 { code = errno }
        if code == 0 { code = file.publish(as: name) }
        if code == EEXIST {
            guard folder.has(name, sameAs: file.descriptor) else { throw ImageFolder.taken("\(path)/\(name)") }
        } else {
            guard code == 0 else { throw failed(state, code) }
            state.tally.new += 1
        }
        state.tally.shards += 1
        state.file = nil
    }

    private static func name(_ state: State) -> String {
        let digits = String(state.tally.shards)
        return String(repeating: "0", count: max(0, 6 - digits.count)) + digits + ".tar"
    }

    private func failed(_ state: State, _ code: Int32) -> PrefetchError {
        PrefetchError(
            .inputOutput, "cannot write \(path)/\(Self.name(state)): \(String(cString: strerror(code)))",
            hint: "make room, and run it again: complete archives stay, the rest is added")
    }
}
