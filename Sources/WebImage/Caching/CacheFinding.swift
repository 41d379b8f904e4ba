/// A problem found in one file of the cache.
public struct CacheFinding: Sendable, Equatable {
    /// Kinds of problems.
    public enum Problem: Sendable, Equatable {
        /// The file's length differs from its record.
        case size(expected: Int, found: Int)
        /// The file's digest differs from its record.
        case digest
        /// Its record has another key: the file was renamed by others.
        case key
        /// Not a valid image; the text of the check.
        case image(String)
        /// A directory, a pipe or the like.
        case notAFile
        /// Not readable; the system's error text.
        case unreadable(String)
        /// No record, or an unreadable one: a hit verifies it first.
        case noRecord
        /// Passed only a lower level than requested: a hit verifies it first.
        case level(ValidationLevel)
    }

    /// The key of the image.
    public var key: CacheKey
    /// Path of the file.
    public var path: String
    /// The problem.
    public var problem: Problem

    /// Whether the file is lost; the next hit fixes the other problems.
    public var isDamaged: Bool {
        switch problem {
        case .size, .digest, .key, .notAFile, .image, .unreadable: true
        case .noRecord, .level: false
        }
    }
}
