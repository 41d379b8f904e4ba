internal import ArgumentParser
internal import Glibc
internal import WebImage

/// Options for every command that writes cache files.
struct StorageOptions: ParsableArguments {
    @Option(
        name: .customLong("cache-mode"),
        help: .value("mode", "Permissions of new files and folders, octal: 0770. (default: the umask)"))
    var mode: FileMode?

    /// How the cache is to be opened; see ``FetchSettings/prepareCache()``.
    func prepare() -> DiskCache.Configuration {
        var settings = FetchSettings()
        settings.cacheMode = mode?.bits
        return settings.prepareCache()
    }
}

/// The permissions of folders in octal digits, `0770`; files have no right to be executed, and those of images none to be written.
struct FileMode: ExpressibleByArgument, Sendable {
    /// Bits as of chmod(2).
    let bits: mode_t

    init?(argument: String) {
        // A cache without its owner's permissions is useless to the user who creates it.
        guard (3...4).contains(argument.count), let bits = mode_t(argument, radix: 8), bits <= 0o777,
            bits & 0o700 == 0o700
        else { return nil }
        self.bits = bits
    }
}

/// Caches that are looked up behind the one a command has.
struct ReadOnlyCacheOptions: ParsableArguments {
    @Option(
        name: .customLong("read-only-cache"),
        help: .folder("Cache, or folder of SDWebImage's, to look up as well; it is never changed. Repeatable."),
        completion: .directory)
    var directories: [String] = []

    func validate() throws {
        if directories.contains("") { throw ValidationError("--read-only-cache needs a folder") }
    }

    /// The same as it has to be typed behind another command.
    var words: String { Self.words(directories) }

    static func words(_ directories: [String]) -> String {
        directories.map { " --read-only-cache \(Shell.quoted(Shell.path($0)))" }.joined()
    }
}
