internal import CLinux
internal import Glibc

/// Handing an image out of the cache.
extension CacheEntry {
    /// The format by the record, or by the first bytes where that does not say; `unknown` where they say nothing either.
    package var format: ImageFormat {
        if let format = record?.format, format != .unknown { return format }
        let head = OpenFile.read(descriptor, at: 0, limit: min(size, 512)) ?? []
        return head.withUnsafeBytes { ImageFormat(sniffing: $0) } ?? .unknown
    }

    /// Gives this very file a second name, whatever has happened to its first one meanwhile.
    /// - Returns: 0 or an errno of link(2); `ENOENT` where its last name has gone.
    package func link(into directory: Int32, as name: String) -> Int32 {
        clinux_link_fd(descriptor, directory, name) == 0 ? 0 : errno
    }

    /// Copies the bytes to where another file stands, by sharing blocks or inside the kernel where that is possible.
    /// - Returns: 0 or an errno.
    package func copy(to file: Int32) -> Int32 {
        var offset = 0
        while offset < size {
            let count = clinux_copy_range(descriptor, Int64(offset), file, size - offset)
            // Of no use between these two files (copy_file_range(2)); what a broken disk says is said again below.
            guard count > 0 else { break }
            offset += count
        }
        while offset < size {
            guard let piece = OpenFile.read(descriptor, at: offset, limit: min(size - offset, 256 << 10)) else {
                return errno
            }
            // Somebody cut the file short.
            if piece.isEmpty { return EIO }
            let code = piece.withUnsafeBytes { OpenFile.write($0, to: file) }
            guard code == 0 else { return code }
            offset += piece.count
        }
        return 0
    }

    /// Whether another open file is this one, or has the same bytes.
    package func isSame(as file: Int32) -> Bool {
        var (own, other) = (stat(), stat())
        guard fstat(descriptor, &own) == 0, fstat(file, &other) == 0, other.st_mode & S_IFMT == S_IFREG else {
            return false
        }
        if own.st_dev == other.st_dev && own.st_ino == other.st_ino { return true }
        guard other.st_size == off_t(size) else { return false }
        var offset = 0
        while offset < size {
            let limit = min(size - offset, 256 << 10)
            guard let piece = OpenFile.read(descriptor, at: offset, limit: limit), !piece.isEmpty,
                piece == OpenFile.read(file, at: offset, limit: limit)
            else { return false }
            offset += piece.count
        }
        return true
    }
}
