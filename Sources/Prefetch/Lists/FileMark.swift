internal import Glibc

/// Which file a list was, and when it was written last: an equal mark is the same list.
struct FileMark: Equatable {
    /// Device, inode, bytes, and seconds and nanoseconds of its last change.
    private let numbers: [Int]

    init(_ status: stat) {
        numbers = [
            Int(status.st_dev), Int(status.st_ino), Int(status.st_size), Int(status.st_mtim.tv_sec),
            Int(status.st_mtim.tv_nsec),
        ]
    }

    /// Of a regular file; nil if there is none.
    init?(path: String) {
        guard let status = PathText.status(path), status.st_mode & S_IFMT == S_IFREG else { return nil }
        self.init(status)
    }

    /// As a batch has it; nil for any other text.
    init?(_ text: String) {
        numbers = text.split(separator: " ").compactMap { Int($0) }
        guard numbers.count == 5 else { return nil }
    }

    var size: Int { numbers[2] }

    /// As a batch has it.
    var text: String { numbers.map(String.init).joined(separator: " ") }
}
