internal import CLinux
internal import Glibc

extension DiskCache {
    /// Visits every image in the order of the keys; files that come or go meanwhile may be visited or not. What is no image of
    /// the cache (`.prefetch`, `bad`, temporary files, records) is passed over.
    func walk(
        _ visit: (_ key: CacheKey, _ leaf: Int32, _ name: String) throws(WebImageError) -> Void
    ) throws(WebImageError) {
        for path in try leafPaths() { try walk(leaf: path, visit) }
    }

    /// `v1/a/b` of every leaf directory there is, in the order of the keys.
    func leafPaths() throws(WebImageError) -> [String] {
        var paths: [String] = []
        for first in try names(in: "v1", length: 1) {
            paths += try namesOfDirectory("v1/\(first)", length: 1).map { "v1/\(first)/\($0)" }
        }
        return paths
    }

    /// Visits the images of one leaf directory.
    func walk(
        leaf path: String, _ visit: (_ key: CacheKey, _ leaf: Int32, _ name: String) throws(WebImageError) -> Void
    ) throws(WebImageError) {
        guard let leaf = OpenFile(clinux_open_beneath(root, path, clinux_directory_flags(), 0)) else { return }
        let digits = path.filter { $0 != "/" }.dropFirst(2)
        for name in try namesOfDirectory(path, length: 62) {
            guard let digest = Digest(hex: digits + name) else { continue }
            try visit(CacheKey(digest), leaf.descriptor, name)
        }
    }

    /// Removes temporary files older than an hour: a crash leaves some where the file system has no unnamed files.
    /// - Returns: how many.
    @discardableResult
    package func removeStaleTemporaryFiles(
        olderThan seconds: Int = 3600, isDryRun: Bool = false
    ) throws(WebImageError) -> Int {
        var removed = 0
        let limit = Self.now() - seconds
        // Where bodies and the cache's own files are made.
        var directories = ["v1", ".prefetch"]
        for first in try names(in: "v1", length: 1) {
            directories += try namesOfDirectory("v1/\(first)", length: 1).map { "v1/\(first)/\($0)" }
        }
        for path in directories {
            guard let folder = OpenFile(clinux_open_beneath(root, path, clinux_directory_flags(), 0)) else { continue }
            for name in try namesOfDirectory(path, length: nil) where name.hasPrefix(".t-") {
                var status = stat()
                guard fstatat(folder.descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0,
                    status.st_mtim.tv_sec <= limit, isDryRun || unlinkat(folder.descriptor, name, 0) == 0
                else { continue }
                removed += 1
            }
        }
        return removed
    }

    /// The same; none where a symbolic link stands in the directory's place, which ``strays()`` names.
    private func namesOfDirectory(_ path: String, length: Int?) throws(WebImageError) -> [String] {
        do throws(WebImageError) { return try names(in: path, length: length) } catch {
            guard error.underlyingCode == ELOOP || error.underlyingCode == EXDEV else { throw error }
            return []
        }
    }

    /// Sorted names of one directory: lower-case hexadecimal ones of a length, or all.
    func names(in path: String, length: Int?) throws(WebImageError) -> [String] {
        let flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC
        guard let directory = OpenFile(clinux_open_beneath(root, path, flags, 0)) else {
            // A stray file, or a directory that was removed meanwhile.
            guard errno == ENOENT || errno == ENOTDIR else { throw fault("list \(path)") }
            return []
        }
        guard let stream = fdopendir(directory.release()) else { throw fault("list \(path)") }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { $0.prefix { $0 != 0 }.map { $0 } }
            if let length, name.count != length || !name.allSatisfy(Self.isHex) { continue }
            names.append(String(decoding: name, as: UTF8.self))
        }
        return names.sorted()
    }

    static func isHex(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
    }
}
