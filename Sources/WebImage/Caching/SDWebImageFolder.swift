internal import CLinux
internal import Glibc

/// An SDWebImage cache on disk, read-only: the folder of its files, or one that contains it, such as a copy of an app's `Library/Caches`.
///
/// Symbolic links in it are not followed. Its files have no records: verify them on each use.
public final class SDWebImageFolder: Sendable {
    /// As given.
    public let path: String
    private let folders: [(descriptor: Int32, below: String)]
    private let layouts: [SDWebImageFileName.Layout]
    let writeOut = WriteOut()

    /// Opens the folder.
    /// * `layout`: naming rule of its files; nil: any version.
    /// - Throws: `localFault` if there is no such folder.
    public init(path: String, layout: SDWebImageFileName.Layout? = nil) throws(WebImageError) {
        self.path = path
        layouts = layout.map { [$0] } ?? [.v5, .v4, .v3]
        var folders: [(descriptor: Int32, below: String)] = []
        // Deepest first; next to them the folder itself has no file of such a name.
        for below in Set(layouts.map(\.folder)).sorted().map({ "/\($0)" }) + [""] {
            let folder = clinux_open(path + below, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
            if folder >= 0 { folders.append((folder, below)) }
        }
        self.folders = folders
        guard !folders.isEmpty else { throw .fileFault("open the folder \(path)") }
    }

    deinit { for (folder, _) in folders { close(folder) } }

    /// The bytes of a key: by each version's name, then without extension, as SDWebImage does. Nil if there are none.
    /// * `most`: longer files are ignored.
    /// - Throws: `localFault` if a file cannot be read.
    public func data(forKey key: String, most: Int = 1 << 30) throws(WebImageError) -> [UInt8]? {
        try entry(forKey: key, level: .none, most: most)?.bytes()
    }

    /// Syncs found files that may not be on disk yet, with one call per folder; false if there are none.
    func syncPending() throws(WebImageError) -> Bool {
        guard writeOut.isPending(in: folders[0].descriptor) else { return false }
        for (folder, below) in folders {
            let code = writeOut.sync(folder, isReadOnly: true)
            guard code == 0 else { throw .fileFault("write out \(path)\(below)", code: code) }
        }
        return true
    }

    /// The unverified file of a key.
    /// * `most`: longer files are ignored.
    func entry(forKey key: String, level: ValidationLevel, most: Int) throws(WebImageError) -> CacheEntry? {
        var names: [String] = []
        for name in layouts.compactMap({ SDWebImageFileName.name(forKey: key, layout: $0) }) {
            for name in [name, String(name.prefix(32))] where !names.contains(name) { names.append(name) }
        }
        for name in names where name.utf8.count <= Int(NAME_MAX) {
            for (folder, below) in folders {
                let flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY
                guard let file = OpenFile(clinux_open_beneath(folder, name, flags, 0)) else {
                    guard errno == ENOENT || Quarantine.isObstacle(errno) else {
                        throw .fileFault("read \(path)\(below)/\(name)")
                    }
                    continue
                }
                var status = stat()
                guard fstat(file.descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
                    Int(status.st_size) <= most
                else { continue }
                return CacheEntry(
                    key: CacheKey(key), path: "\(path)\(below)/\(name)", claim: nil, isBelieved: false,
                    isElsewhere: true,
                    level: level, maxUnverified: most, file: file, status: status, identity: 0)
            }
        }
        return nil
    }
}
