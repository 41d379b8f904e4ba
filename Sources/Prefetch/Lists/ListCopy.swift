internal import Glibc
internal import WebImage

/// A compressed copy of a list, made while its batch is fed: results of a batch do not hang on a file that people edit, move or delete, and a
/// pipe cannot be read again.
///
/// It is named by the digest of the list and belongs to no batch: what has not been used for 90 days is removed when another one is made. Of a list
/// larger than a bound there are ``ListSums`` instead.
package struct ListCopy: Sendable, Equatable {
    /// Bytes of the largest list that is copied, unless something else is asked for.
    package static let usualMost = 1 << 30
    private static let lifetime = 90 * 86_400
    private static let endings = [".list.zst", ".list.txt", ListSums.ending]

    private let folder: String
    private let hash: String

    /// Nil if the digest is none.
    init?(of hash: String, in folder: String) {
        guard !folder.isEmpty, hash.utf8.count == 64, hash.utf8.allSatisfy(Self.isDigit) else { return nil }
        (self.folder, self.hash) = (folder, hash)
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
    }

    var path: String { "\(folder)/\(hash)\(Self.endings[0])" }

    /// A new path for the lines of what is no file of lines, as long as they are being read. It is removed like a copy.
    static func newLines(in folder: String) -> String {
        let words = (0..<4).map { _ in UInt64.random(in: 0 ... .max) }
        return "\(folder)/\(words.map { String($0, radix: 16) }.joined())\(endings[1])"
    }

    /// Whether a path is one that ``newLines(in:)`` makes, of a file that only this user can have written.
    static func isLines(_ path: String, in folder: String) -> Bool {
        path.hasPrefix(folder + "/") && !path.dropFirst(folder.count + 1).contains("/") && path.hasSuffix(endings[1])
            && isPrivate(folder, S_IFDIR) && isPrivate(path, S_IFREG)
    }

    /// The list as a file of lines, unpacked when it is first wanted.
    /// * `length`: the bytes whose digest it is named by.
    /// - Returns: nil if there is no copy, it cannot be read or unpacked, or is another list.
    func unpacked(_ length: Int) -> String? {
        let file = "\(folder)/\(hash)\(Self.endings[1])"
        // The path is from Redis: only what this user has written, where nobody else writes, is a copy.
        guard Self.isPrivate(folder, S_IFDIR) else { return nil }
        if Self.isPrivate(file, S_IFREG) {
            // The time of its last use.
            utimensat(AT_FDCWD, file, nil, 0)
            return file
        }
        guard Self.isPrivate(path, S_IFREG) else { return nil }
        utimensat(AT_FDCWD, path, nil, 0)
        let temporary = "\(file).\(getpid())"
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { return nil }
        guard let output = fdopen(descriptor, "w") else {
            close(descriptor)
            return nil
        }
        // A reader is a buffer, or a long line, ahead of the last line that counts.
        let isWhole = Self.unpack(path, to: output, most: length + 2 * LineReader.longest)
        guard fclose(output) == 0, isWhole, ListDigest.hex(ofFile: temporary, upTo: length) == hash,
            rename(temporary, file) == 0
        else {
            unlink(temporary)
            return nil
        }
        return file
    }

    static func isPrivate(_ path: String, _ kind: mode_t) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == kind && status.st_uid == geteuid()
            && status.st_mode & 0o022 == 0
    }

    private static func unpack(_ path: String, to output: UnsafeMutablePointer<FILE>, most: Int) -> Bool {
        do throws(PrefetchError) {
            var bytes = try InputBytes(path: path)
            var count = 0
            while case let piece = try bytes.next(), !piece.isEmpty {
                count += piece.count
                guard count <= most,
                    piece.withUnsafeBytes({ fwrite($0.baseAddress, 1, $0.count, output) }) == piece.count
                else { return false }
            }
            return true
        } catch {
            return false
        }
    }

    /// Writes the copy of a list that is being read.
    ///
    /// What cannot be written, on a full disk, is left out: the list is still where it was.
    final class Writer {
        private let folder: String
        private let temporary: String
        private var file: Int32
        private let packer: ZstdPacker?
        private var count = 0
        private let most: Int

        /// * `most`: bytes of the largest list that is copied.
        init?(in folder: String, most: Int) {
            (self.folder, self.most) = (folder, most)
            temporary = "\(folder)/\(getpid())-\(UInt32.random(in: 0 ... .max))\(ListCopy.endings[0]).part"
            ListCopy.removeOld(in: folder)
            packer = ZstdPacker()
            file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
            guard file >= 0 else { return nil }
        }

        deinit { abandon() }

        func write(_ bytes: UnsafeRawBufferPointer) {
            guard file >= 0, !bytes.isEmpty else { return }
            count += bytes.count
            if count > most || !put(bytes, isLast: false) { abandon() }
        }

        /// Every byte of the list was written; returns whether there is a copy now.
        func finish(_ hash: String) -> Bool {
            guard file >= 0, let copy = ListCopy(of: hash, in: folder) else { return false }
            let isWhole = put(UnsafeRawBufferPointer(start: nil, count: 0), isLast: true)
            let isClosed = close(file) == 0
            file = -1
            guard isWhole, isClosed, rename(temporary, copy.path) == 0 else {
                unlink(temporary)
                return false
            }
            return true
        }

        private func put(_ bytes: UnsafeRawBufferPointer, isLast: Bool) -> Bool {
            packer?.pack(bytes, isLast: isLast) { OpenFile.write($0, to: file) == 0 } ?? false
        }

        private func abandon() {
            guard file >= 0 else { return }
            close(file)
            file = -1
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
