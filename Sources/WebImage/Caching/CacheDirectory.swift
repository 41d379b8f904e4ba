internal import CLinux
internal import Glibc
package import Threading

/// The opened directory of a cache: all access below it neither follows symbolic links nor crosses mount points. All methods may block on
/// the disk. Internal methods of the cache throw `localFault` unless documented otherwise.
package final class CacheDirectory: Sendable {
    static let idPath = ".prefetch/id"

    package let path: String
    let isReadOnly: Bool
    /// Open for the lifetime of this object.
    let descriptor: Int32
    let features: FileSystemFeatures
    package let calls = FileCalls()

    /// Opens a directory, creating it if it is missing and may be created.
    /// - Throws: `localFault` with errno and a sentence that names the directory.
    init(_ path: String, _ configuration: DiskCache.Configuration) throws(WebImageError) {
        self.path = path
        isReadOnly = configuration.isReadOnly
        features = FileSystemFeatures(configuration)
        if !isReadOnly { try Self.makeDirectory(path) }
        let flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC
        guard let file = OpenFile(clinux_open(path.isEmpty ? "." : path, flags, 0)) else {
            throw .fileFault("open the cache directory \(path)")
        }
        descriptor = file.release()
    }

    deinit { close(descriptor) }

    private static func makeDirectory(_ path: String) throws(WebImageError) {
        if path.isEmpty || mkdir(path, 0o777) == 0 || errno == EEXIST { return }
        let code = errno
        let parent = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? ""
        guard code == ENOENT, !parent.isEmpty else { throw .fileFault("make the cache directory \(path)", code: code) }
        try makeDirectory(parent)
        guard mkdir(path, 0o777) == 0 || errno == EEXIST else { throw .fileFault("make the cache directory \(path)") }
    }

    // MARK: Opening

    /// Opens a file or a folder below the directory; nil with `errno`.
    /// * `flags`: by default for reading a file of any type. O_NONBLOCK: opening a FIFO must not wait for a writer.
    func open(
        _ path: String, _ flags: Int32 = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, _ mode: mode_t = 0
    ) -> OpenFile? {
        OpenFile(clinux_open_beneath(descriptor, path, flags, mode))
    }

    /// Opens a folder below the directory as a base for names (O_PATH); nil with `errno`.
    func folder(_ path: String) -> OpenFile? { open(path, clinux_directory_flags()) }

    /// Calls a system call with the folder and the last component of a path: mkdirat(2), unlinkat(2) and linkat(2) would follow symbolic
    /// links.
    /// - Returns: the result of the call; -1 with `errno` if the folder cannot be opened.
    private func beneath(_ path: String, _ call: (_ folder: Int32, _ name: String) -> Int32) -> Int32 {
        guard let slash = path.lastIndex(of: "/") else { return call(descriptor, path) }
        guard let folder = folder(String(path[..<slash])) else { return -1 }
        return call(folder.descriptor, String(path[path.index(after: slash)...]))
    }

    /// Sorted names in a folder: lower-case hexadecimal ones of a length, or all. Empty if the folder does not exist.
    func names(in path: String, length: Int?) throws(WebImageError) -> [String] {
        guard let directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) else {
            // A stray file, or a directory removed meanwhile.
            guard errno == ENOENT || errno == ENOTDIR else { throw fault("list \(path)") }
            return []
        }
        guard let stream = fdopendir(directory.release()) else { throw fault("list \(path)") }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { $0.prefix { $0 != 0 }.map { $0 } }
            if let length, name.count != length || !name.allSatisfy(Digest.isDigit) { continue }
            names.append(String(decoding: name, as: UTF8.self))
        }
        return names.sorted()
    }

    // MARK: Creating and removing

    /// mkdirat(2) below the directory. Returns 0, or -1 with `errno`.
    func makeFolder(_ path: String) -> Int32 { beneath(path) { mkdirat($0, $1, 0o777) } }

    /// unlinkat(2) below the directory. Returns 0, or -1 with `errno`.
    @discardableResult
    func removeName(_ path: String) -> Int32 { beneath(path) { unlinkat($0, $1, 0) } }

    /// Atomically creates a small file unless the name exists: the first process wins, and a kill leaves the whole file or none, except
    /// that it may leave a temporary name on file systems without unnamed files.
    /// - Returns: 0 or an errno.
    func makeOnce(_ path: String, _ bytes: UnsafeRawBufferPointer, mode: mode_t, isSynced: Bool) -> Int32 {
        func fill(_ file: borrowing OpenFile) -> Int32 {
            let code = OpenFile.write(bytes, to: file.descriptor)
            return code == 0 && isSynced && fsync(file.descriptor) != 0 ? errno : code
        }
        if features.known.unnamedFiles, let file = open(".prefetch", clinux_tmpfile_flags(), mode) {
            let code = fill(file)
            guard code == 0 else { return code }
            if beneath(path, { clinux_link_fd(file.descriptor, $0, $1) }) == 0 || errno == EEXIST { return 0 }
        }
        let temporary = ".prefetch/\(TemporaryFiles.name())"
        guard let file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode) else { return errno }
        var code = fill(file)
        if code == 0 { code = NewFile(file.descriptor, temporaryName: temporary, in: descriptor).publish(as: path) }
        removeName(temporary)
        return code == EEXIST ? 0 : code
    }

    // MARK: State

    /// Unique ID of this cache, 32 hexadecimal digits in `.prefetch/id`: processes with the same ID use the same directory, whatever its
    /// path. A copy of the directory keeps it until that file is removed. Nil if there is none and it cannot be created.
    package var id: String? {
        guard let file = open(Self.idPath, O_RDONLY | O_CLOEXEC | O_NONBLOCK),
            let bytes = OpenFile.read(file.descriptor, at: 0, limit: 64)
        else { return nil }
        let digits = bytes.prefix { $0 != UInt8(ascii: "\n") }
        return digits.count == 32 && digits.allSatisfy(Digest.isDigit) ? String(decoding: digits, as: UTF8.self) : nil
    }

    /// A directory that is there, for reading.
    package static func existing(_ path: String) -> CacheDirectory? {
        try? CacheDirectory(path, DiskCache.Configuration(isReadOnly: true))
    }

    /// `localFault` for the current errno, with a sentence that names the directory.
    func fault(_ doing: String, code: Int32 = errno) -> WebImageError {
        .fileFault("\(doing) in the cache \(path)", code: code)
    }
}
