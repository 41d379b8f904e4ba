internal import CZlib
internal import Glibc

/// A compressed copy of a list, made while its batch is fed: results of a batch do not hang on a file that people edit, move or delete.
///
/// It is named by the digest of the list and belongs to no batch: what has not been used for 90 days is removed when another one is made. A list
/// larger than 1 GiB is not kept.
package struct ListCopy: Sendable {
    private static let longest = 1 << 30
    private static let lifetime = 90 * 86_400
    private static let endings = [".list.gz", ".list.txt"]

    private let folder: String
    private let hash: String

    init(of hash: String, in folder: String) { (self.folder, self.hash) = (folder, hash) }

    /// By the path of one; nil if it is none.
    init?(path: String) {
        guard let slash = path.lastIndex(of: "/"), path.hasSuffix(Self.endings[0]) else { return nil }
        folder = String(path[..<slash])
        hash = String(path[path.index(after: slash)...].dropLast(Self.endings[0].count))
        guard hash.utf8.count == 64, hash.utf8.allSatisfy(Self.isDigit) else { return nil }
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
    }

    var path: String { "\(folder)/\(hash)\(Self.endings[0])" }

    /// The list as a file of lines, unpacked when it is first wanted.
    /// - Returns: nil if there is no copy, or it cannot be read or unpacked.
    func unpacked() -> String? {
        let file = "\(folder)/\(hash)\(Self.endings[1])"
        // The path is from Redis: only what this user has written, where nobody else writes, is a copy.
        guard Self.isPrivate(folder, S_IFDIR), Self.isPrivate(path, S_IFREG) else { return nil }
        // The time of its last use.
        utimensat(AT_FDCWD, path, nil, 0)
        if utimensat(AT_FDCWD, file, nil, 0) == 0 { return file }
        let temporary = "\(file).\(getpid())"
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { return nil }
        guard let output = fdopen(descriptor, "w") else {
            close(descriptor)
            return nil
        }
        let isWhole = Self.unpack(path, to: output)
        guard fclose(output) == 0, isWhole, rename(temporary, file) == 0 else {
            unlink(temporary)
            return nil
        }
        return file
    }

    private static func isPrivate(_ path: String, _ kind: mode_t) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == kind && status.st_uid == geteuid()
            && status.st_mode & 0o022 == 0
    }

    private static func unpack(_ path: String, to output: UnsafeMutablePointer<FILE>) -> Bool {
        do throws(PrefetchError) {
            var bytes = try InputBytes(path: path)
            var count = 0
            while case let piece = try bytes.next(), !piece.isEmpty {
                count += piece.count
                guard count <= longest,
                    piece.withUnsafeBytes({ fwrite($0.baseAddress, 1, $0.count, output) }) == piece.count
                else { return false }
            }
            return true
        } catch {
            return false
        }
    }

    /// Writes the copy of a list that is being read; nil if there is one already.
    ///
    /// What cannot be written, on a full disk, is left out: the list is still where it was.
    final class Writer {
        private let copy: ListCopy
        private let temporary: String
        private var file: gzFile?
        private var count = 0

        init?(_ copy: ListCopy) {
            (self.copy, temporary) = (copy, "\(copy.path).\(getpid())")
            guard access(copy.path, F_OK) != 0 else { return nil }
            ListCopy.removeOld(in: copy.folder)
            let descriptor = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
            guard descriptor >= 0 else { return nil }
            // The fastest level: lists of URLs shrink to a sixth with it.
            file = gzdopen(descriptor, "wb1")
            if file == nil { close(descriptor) }
        }

        deinit { abandon() }

        func write(_ bytes: UnsafeRawBufferPointer) {
            guard let file, let base = bytes.baseAddress, !bytes.isEmpty else { return }
            count += bytes.count
            if count > ListCopy.longest || gzwrite(file, base, UInt32(bytes.count)) != Int32(bytes.count) { abandon() }
        }

        /// Every byte of the list was written.
        func finish() {
            guard let file else { return }
            self.file = nil
            if gzclose(file) != Z_OK || rename(temporary, copy.path) != 0 { unlink(temporary) }
        }

        private func abandon() {
            guard let file else { return }
            self.file = nil
            gzclose(file)
            unlink(temporary)
        }
    }

    private static func removeOld(in folder: String) {
        guard let stream = opendir(folder) else { return }
        defer { closedir(stream) }
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            var status = stat()
            guard endings.contains(where: { name.contains($0) }), lstat("\(folder)/\(name)", &status) == 0,
                status.st_mode & S_IFMT == S_IFREG, now.tv_sec - status.st_mtim.tv_sec > lifetime
            else { continue }
            unlink("\(folder)/\(name)")
        }
    }
}
