internal import ArgumentParser
internal import Glibc
internal import Prefetch
internal import WebImage

/// What the cache may hold, nothing is ever removed from it without one of these; and how its files are made.
struct CacheLimitOptions: ParsableArguments {
    @Option(name: .customLong("cache-max-age"), help: "Remove images that are older, as 7d; none by default.")
    var maxAge: TimeSpan?

    @Option(
        name: .customLong("cache-max-size"),
        help: "What the images may take of the disk, as 10GiB: the oldest go; no limit by default.")
    var maxSize: ByteSize?

    @Option(
        name: .customLong("cache-expire-by"),
        help: "The date that says how old an image is: modified, accessed, created, changed.")
    var expireBy = ExpiryDate.modified

    @Option(name: .customLong("min-free"), help: "Pause where the disk has less room, as 1GiB; none by default.")
    var minFree: ByteSize?

    @Option(
        name: .customLong("cache-mode"),
        help: "Who may read and write what is made, in octal as 0770; by default what the umask says.")
    var mode: FileMode?

    @Flag(name: .customLong("strict-cache"), help: "Refuse a cache that everybody on this machine may write to.")
    var isStrict = false

    @Flag(name: .customLong("plain-files"), help: "Do without unnamed files and extended attributes, as NFS has to.")
    var plainFiles = false

    /// How the cache is to be opened. Sets the umask of this process, of which all that it makes has its mode.
    func prepare() -> DiskCache.Configuration {
        if let mode { umask(0o777 & ~mode.bits) }
        var configuration = DiskCache.Configuration(
            usesUnnamedFiles: plainFiles ? .never : .auto, usesExtendedAttributes: plainFiles ? .never : .auto,
            expireType: expireBy.type)
        configuration.isStrict = isStrict
        return configuration
    }

    /// The same for a worker.
    var limits: CacheLimits {
        CacheLimits(maxAge: maxAge?.seconds, maxSize: maxSize?.bytes, minFree: minFree?.bytes)
    }

    /// The same options as arguments for a worker.
    var arguments: [String] {
        var words: [String] = []
        if let maxAge { words += ["--cache-max-age", maxAge.argument] }
        if let maxSize { words += ["--cache-max-size", maxSize.argument] }
        if expireBy != .modified { words += ["--cache-expire-by", expireBy.rawValue] }
        if let minFree { words += ["--min-free", minFree.argument] }
        if let mode { words += ["--cache-mode", mode.argument] }
        if isStrict { words.append("--strict-cache") }
        if plainFiles { words.append("--plain-files") }
        return words
    }
}

/// SDImageCacheConfig's diskCacheExpireType in a word.
enum ExpiryDate: String, ExpressibleByArgument, CaseIterable {
    case modified, accessed, created, changed

    /// The same for a cache.
    var type: DiskCache.ExpireType {
        switch self {
        case .modified: .modificationDate
        case .accessed: .accessDate
        case .created: .creationDate
        case .changed: .changeDate
        }
    }
}

/// The permissions of folders in octal digits, `0770`; files have no right to be executed, and those of images none to be written.
struct FileMode: ExpressibleByArgument, Sendable {
    /// Bits as of chmod(2).
    let bits: mode_t

    init?(argument: String) {
        // Without its owner's rights a cache is of no use to whoever makes it.
        guard (3...4).contains(argument.count), let bits = mode_t(argument, radix: 8), bits <= 0o777,
            bits & 0o700 == 0o700
        else { return nil }
        self.bits = bits
    }

    /// In a form that parses.
    var argument: String { "0" + String(bits, radix: 8) }
}
