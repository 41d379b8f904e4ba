/// What a check of the cache found out about one file.
public struct CacheFinding: Sendable, Equatable {
    /// What is wrong.
    public enum Problem: Sendable, Equatable {
        /// The file's length is not the one of its record.
        case size(expected: Int, found: Int)
        /// The file's digest is not the one of its record.
        case digest
        /// Its record is that of another key's image: somebody gave it this name.
        case key
        /// The bytes are no whole image, in the words of the check.
        case image(String)
        /// It is a directory, a pipe or the like.
        case notAFile
        /// It cannot be read, in the system's words.
        case unreadable(String)
        /// It has no record, or one that cannot be read: a hit verifies it first.
        case noRecord
        /// It passed a lower level than was asked for: a hit verifies it first.
        case level(ValidationLevel)
    }

    /// Which image.
    public var key: CacheKey
    /// Its path.
    public var path: String
    /// What is wrong.
    public var problem: Problem

    /// Whether the file is lost; the other problems are mended by the next hit.
    public var isDamaged: Bool {
        switch problem {
        case .size, .digest, .key, .notAFile, .image, .unreadable: true
        case .noRecord, .level: false
        }
    }
}
