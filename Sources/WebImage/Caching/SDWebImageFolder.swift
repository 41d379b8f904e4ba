internal import CLinux
internal import Glibc

/// A cache of SDWebImage as it is on disk, only for reading: the folder of its files, or one that has it below, such as a copy of an app's
/// `Library/Caches`.
///
/// No symbolic link in it is followed. Nothing vouches for its files: whoever takes one verifies it.
public final class SDWebImageFolder: Sendable {
    /// As it was named.
    public let path: String
    private let folders: [(descriptor: Int32, below: String)]
    private let layouts: [SDWebImageFileName.Layout]
    /// What of it is known to be on the disk.
    let writeOut = WriteOut()

    /// Opens it.
    ///
    /// * `layout`: whose names its files have; nil: any version's.
    /// - Throws: `localFault` where there is no such folder.
    public init(path: String, layout: SDWebImageFileName.Layout? = nil) throws(WebImageError) {
        self.path = path
        layouts = layout.map { [$0] } ?? [.v5, .v4, .v3]
        var folders: [(descriptor: Int32, below: String)] = []
        // The deepest first: beside them the folder itself has no file of such a name.
        for below in Set(layouts.map(\.folder)).sorted().map({ "/\($0)" }) + [""] {
            let folder = clinux_open(path + below, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
            if folder >= 0 { folders.append((folder, below)) }
        }
        self.folders = folders
        guard !folders.isEmpty else { throw .fileFault("open the folder \(path)") }
    }

    deinit { for (folder, _) in folders { close(folder) } }

    /// The bytes under a key: by the name of each version, then by that without its extension, as SDWebImage looks. Nil where there are none.
    ///
    /// * `most`: a longer file is none.
    /// - Throws: `localFault` where a file cannot be read.
    public func data(forKey key: String, most: Int = 1 << 30) throws(WebImageError) -> [UInt8]? {
        try entry(forKey: key, level: .none, most: most)?.bytes()
    }

    /// Writes out what was found and may not be on the disk yet, all folders by one call each; false where there is no such file.
    /// - Throws: `localFault`.
    func syncPending() throws(WebImageError) -> Bool {
        guard writeOut.isPending(in: folders[0].descriptor) else { return false }
        for (folder, below) in folders {
            let code = writeOut.sync(folder, isReadOnly: true)
            guard code == 0 else { throw .fileFault("write out \(path)\(below)", code: code) }
        }
        return true
    }

    /// The file under a key, of which nothing is known.
    ///
    /// * `most`: a longer file is none.
    /// - Throws: `localFault`.
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
                    key: CacheKey(key), path: "\(path)\(below)/\(name)", record: nil, isElsewhere: true, level: level,
                    mostUnproved: most, file: file, status: status)
            }
        }
        return nil
    }
}
