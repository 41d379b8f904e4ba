internal import CLinux
internal import Glibc
package import Threading

/// A directory of verified images that any number of processes share. The file system is the index: there is no server, no
/// database and nothing to repair. `docs/CACHE.md` has the layout and what a crash leaves.
///
/// All methods may block on the disk; call them from a thread that may.
public final class DiskCache: Sendable {
    /// The cache directory as it was named.
    public let directory: String
    /// How it was opened.
    public let configuration: Configuration
    /// Sentences about the directory that a person should read: it is open to everyone.
    public let warnings: [String]

    let root: Int32
    /// What is looked up behind this directory.
    let tiers: [CacheTier]
    /// What the file system can do, as far as it has been tried.
    private let abilities: Locked<Abilities>
    let leaves = LeafDirectories()
    /// What of it is known to be on the disk.
    let writeOut = WriteOut()
    /// Those of its calls that have not returned: a disk may hang.
    package let calls = FileCalls()
    /// Nil where nothing is stored.
    let account: CacheAccount?
    /// Permissions of a published file: nobody writes to it again.
    let publishedMode: mode_t

    struct Abilities {
        var unnamedFiles: Bool
        var attributes: Bool
        /// Whether a file takes an attribute that is read-only from the start (CAP_DAC_OVERRIDE): a call less for each image.
        var attributesOfReadOnlyFiles: Bool
    }

    /// Opens a cache directory; makes it, and what belongs into it, where it is missing.
    /// - Throws: `localFault` with errno and a sentence that names the directory.
    public init(directory: String, configuration: Configuration = Configuration()) throws(WebImageError) {
        self.directory = directory
        self.configuration = configuration
        if !configuration.isReadOnly { try Self.makeDirectory(directory) }
        let flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC
        guard let file = OpenFile(clinux_open(directory.isEmpty ? "." : directory, flags, 0)) else {
            throw Self.fault("open the cache directory \(directory)")
        }
        var status = stat()
        guard fstat(file.descriptor, &status) == 0 else { throw Self.fault("open the cache directory \(directory)") }
        if configuration.isStrict, status.st_mode & 0o002 != 0 {
            throw WebImageError(
                .invalidConfiguration,
                "everybody on this machine can write to the cache directory \(directory): chmod o-w it, or do not ask for a strict "
                    + "cache")
        }
        warnings =
            status.st_mode & 0o002 == 0
            ? []
            : [
                "everybody on this machine can write to the cache directory \(directory) and so put files there that count as "
                    + "verified; chmod o-w takes that away"
            ]
        publishedMode = 0o444 & ~Self.umask()
        var tiers: [CacheTier] = []
        for directory in configuration.readOnlyDirectories {
            tiers.append(try CacheTier(directory, mostUnproved: configuration.maxUnprovedSize))
        }
        self.tiers = tiers
        abilities = Locked(
            Abilities(
                // An unnamed file gets its name through /proc (open(2), O_TMPFILE).
                unnamedFiles: configuration.usesUnnamedFiles == .auto && access("/proc/self/fd", X_OK) == 0,
                attributes: configuration.usesExtendedAttributes == .auto, attributesOfReadOnlyFiles: geteuid() == 0))
        root = file.release()
        account =
            configuration.isReadOnly
            ? nil : CacheAccount(root: root, isUnnamed: configuration.usesUnnamedFiles == .auto)
        var isNew = false
        if !configuration.isReadOnly { isNew = try lay() }
        account?.refresh()
        // The images that were counted are not there any more.
        if isNew { try recount() }
    }

    deinit { close(root) }

    /// Makes everything stored until now survive a power cut: one syncfs(2) for the whole file system. Does nothing unless the
    /// durability is `batch`.
    /// - Throws: `localFault`.
    public func sync() throws(WebImageError) {
        guard configuration.durability == .batch else { return }
        try syncOwn()
    }

    /// Makes every image that was stored or found here survive a power cut, also one that another process published and nobody has
    /// written out yet: one syncfs(2) where there is such an image, none where all of them are known to be on the disk. Does nothing
    /// where the durability is `none`.
    /// - Returns: whether it wrote anything out.
    /// - Throws: `localFault`.
    @discardableResult
    package func syncPending() throws(WebImageError) -> Bool {
        guard configuration.durability != .none else { return false }
        let call = calls.begin()
        defer { calls.end(call) }
        var hasWritten = writeOut.isPending(in: root)
        if hasWritten { try syncOwn() }
        for tier in tiers where try tier.syncPending() { hasWritten = true }
        return hasWritten
    }

    private func syncOwn() throws(WebImageError) {
        let call = calls.begin()
        defer { calls.end(call) }
        let code = writeOut.sync(root, isReadOnly: configuration.isReadOnly)
        guard code == 0 else { throw fault("write out", code: code) }
    }

    /// Opens the file a body grows in past its memory limit. Without a name where the file system can do that, so that nothing is
    /// left of it after a crash; the caller closes it.
    /// - Throws: `localFault`.
    package func openTemporaryFile() throws(WebImageError) -> Int32 {
        let call = calls.begin()
        defer { calls.end(call) }
        if current.unnamedFiles {
            let file = Descriptors.admit(clinux_open_beneath(root, "v1", clinux_tmpfile_flags(), 0o600))
            if file >= 0 { return file }
            guard lacksUnnamedFiles(errno) else { throw fault("make a temporary file") }
        }
        let name = "v1/\(Self.temporaryName())"
        let file = clinux_open_beneath(root, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw fault("make a temporary file") }
        removeName(name)
        let admitted = Descriptors.admit(file)
        guard admitted >= 0 else { throw fault("make a temporary file") }
        return admitted
    }

    /// Writes a file of one byte out to the disk and lets it go again: whether the disk answers. Blocks for as long as it does not.
    /// - Throws: `localFault`; then it answers too.
    package func probe() throws(WebImageError) {
        guard let file = OpenFile(try openTemporaryFile()) else { throw fault("make a temporary file") }
        var byte: UInt8 = 0
        guard Glibc.write(file.descriptor, &byte, 1) == 1, fdatasync(file.descriptor) == 0 else {
            throw fault("write a temporary file")
        }
    }

    var current: Abilities { abilities.withLock { $0 } }

    /// Whether the error means that the file system has no unnamed files; remembered.
    func lacksUnnamedFiles(_ code: Int32) -> Bool {
        // EISDIR: a kernel or file system that takes the flag for O_DIRECTORY (open(2)).
        guard code == EOPNOTSUPP || code == EISDIR || code == EINVAL else { return false }
        abilities.withLock { $0.unnamedFiles = false }
        return true
    }

    /// Whether the error means that the file system has no extended attributes; remembered.
    func lacksAttributes(_ code: Int32) -> Bool {
        guard code == ENOTSUP || code == ENOSYS else { return false }
        abilities.withLock { $0.attributes = false }
        return true
    }

    /// Whether the error means that an attribute wants write permission of the file itself (xattr(7)); remembered.
    func lacksAttributesOfReadOnlyFiles(_ code: Int32) -> Bool {
        guard code == EACCES || code == EPERM else { return false }
        abilities.withLock { $0.attributesOfReadOnlyFiles = false }
        return true
    }

    /// `localFault` of the current errno, with a sentence that names the directory.
    func fault(_ doing: String, code: Int32 = errno) -> WebImageError {
        Self.fault("\(doing) in the cache \(directory)", code: code)
    }

    static func fault(_ doing: String, code: Int32 = errno) -> WebImageError {
        let reason =
            switch code {
            case ENOSPC: "the disk is full, or has no inodes left"
            case EDQUOT: "the disk quota is used up"
            case EROFS: "the file system is mounted read-only"
            case EACCES, EPERM: "this user may not (\(errnoText(code)))"
            case EMFILE, ENFILE: "no file descriptors are left"
            case ELOOP, EXDEV:
                "a symbolic link or a mount point stands where only directories and files of the cache may be"
            default: errnoText(code)
            }
        return WebImageError(.localFault, "cannot \(doing): \(reason)", underlyingCode: code)
    }

    /// A name that no other process uses.
    static func temporaryName() -> String {
        ".t-\(getpid())-\(String(UInt64.random(in: 0 ... .max), radix: 16))"
    }

    /// An open directory of the cache, or below another open one; nil with `errno`.
    func directory(_ path: String) -> OpenFile? {
        OpenFile(clinux_open_beneath(root, path, clinux_directory_flags(), 0))
    }

    /// mkdir -p
    private static func makeDirectory(_ path: String) throws(WebImageError) {
        if path.isEmpty || mkdir(path, 0o777) == 0 || errno == EEXIST { return }
        let code = errno
        let parent = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? ""
        guard code == ENOENT, !parent.isEmpty else { throw fault("make the cache directory \(path)", code: code) }
        try makeDirectory(parent)
        guard mkdir(path, 0o777) == 0 || errno == EEXIST else { throw fault("make the cache directory \(path)") }
    }

    /// From /proc (proc(5)): umask(2) can only be read by changing it, which another thread could see.
    private static func umask() -> mode_t {
        guard let file = OpenFile(clinux_open("/proc/self/status", O_RDONLY | O_CLOEXEC, 0)),
            let bytes = OpenFile.read(file.descriptor, at: 0, limit: 4096)
        else { return 0o022 }
        for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") where line.hasPrefix("Umask:") {
            return mode_t(line.dropFirst(6).drop { $0 == " " || $0 == "\t" }, radix: 8) ?? 0o022
        }
        return 0o022
    }
}
