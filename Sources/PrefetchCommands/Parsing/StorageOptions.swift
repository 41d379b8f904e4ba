internal import ArgumentParser
internal import Glibc
internal import WebImage

/// How the files of a cache are made, by whatever makes some.
struct StorageOptions: ParsableArguments {
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
            usesUnnamedFiles: plainFiles ? .never : .auto, usesExtendedAttributes: plainFiles ? .never : .auto)
        configuration.isStrict = isStrict
        return configuration
    }

    /// The same for a worker.
    var arguments: [String] {
        var words: [String] = []
        if let mode { words += ["--cache-mode", mode.argument] }
        if isStrict { words.append("--strict-cache") }
        if plainFiles { words.append("--plain-files") }
        return words
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

/// Caches that are looked up behind the one a command has.
struct ReadOnlyCacheOptions: ParsableArguments {
    @Option(
        name: .customLong("read-only-cache"),
        help: "A cache, or a folder of SDWebImage's, that is looked up too and never changed; may be repeated.",
        completion: .directory)
    var directories: [String] = []

    func validate() throws {
        if directories.contains("") { throw ValidationError("--read-only-cache wants a folder") }
    }

    /// The same for a worker.
    var arguments: [String] { directories.flatMap { ["--read-only-cache", $0] } }

    /// The same as it has to be typed behind another command.
    var words: String { directories.map { " --read-only-cache \(Shell.quoted(Shell.path($0)))" }.joined() }
}
