internal import ArgumentParser
internal import Glibc
internal import Prefetch
internal import WebImage

/// `prefetch-coord cache put`: an image by hand.
struct CachePutCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "put",
        abstract: "Verify an image file and store it under a URL.",
        usage: "prefetch-coord cache put <url> <file> [<options>]",
        discussion: """
            Examples:
              prefetch-coord cache put https://example.org/a.jpg a.jpg --cache ./cache
              prefetch-coord cache put https://example.org/a.jpg - < a.jpg

            A file that is not a complete image is not stored (exit code 65); an image that
            the URL already has is replaced. Prints the path in the cache.
            """)

    @Argument(help: "URL of the image.")
    var url: String

    @Argument(help: "The image, or - for standard input.", completion: .file())
    var file: String

    @Option(
        name: .customLong("validate"),
        help: .value("level", "How far the image is checked: none, header, structure or decode."))
    var level = "decode"

    @Option(help: .size("Largest image."))
    var maxSize = ByteSize(bytes: 64 << 20)

    @OptionGroup(title: "Cache") var options: CacheOptions
    @OptionGroup(title: "Cache files") var storage: StorageOptions

    func validate() throws {
        guard ValidationLevel(name: level) != nil else {
            throw ValidationError("--validate is none, header, structure or decode, not '\(level)'")
        }
        guard URLLines.isURL(url) else { throw ValidationError("'\(TerminalText.escaped(url))' is not a URL") }
    }

    func run() throws {
        let bytes = try Self.read(file, most: maxSize.bytes)
        let disk = try CacheOpening.forWriting(options.directory, storage.prepare())
        for warning in disk.warnings { Console.note("warning: \(warning)") }
        let key = options.rule.key(for: url)
        do throws(WebImageError) {
            try disk.images.storeVerified(bytes, forKey: key, level: ValidationLevel(name: level) ?? .decode)
        } catch {
            guard error.code == .badImageData || error.code == .unsupportedFormat else { throw error }
            throw PrefetchError(
                .unreadableList, "\(TerminalText.escaped(file)) is not a complete image: \(error.message)",
                hint: "nothing was stored; --validate none stores anything")
        }
        try disk.sync()
        Console.print(disk.images.path(of: CacheKey(key)))
    }

    /// A whole file, or what comes on standard input.
    static func read(_ path: String, most: Int) throws(PrefetchError) -> [UInt8] {
        let file = path == "-" ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC)
        func failed() -> PrefetchError {
            PrefetchError(
                errno == ENOENT ? .notFound : .unreadableList,
                "cannot read \(TerminalText.escaped(path)): \(String(cString: strerror(errno)))")
        }
        guard file >= 0 else { throw failed() }
        defer { close(file) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 18)
        while true {
            let count = Glibc.read(file, &buffer, buffer.count)
            if count == 0 { return bytes }
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { throw failed() }
            bytes += buffer[..<count]
            guard bytes.count <= most else {
                throw PrefetchError(
                    .unreadableList, "\(TerminalText.escaped(path)) has more than \(most) bytes",
                    hint: "raise the limit: --max-size")
            }
        }
    }
}

extension CacheOptions {
    /// The cache for a command that changes it: it has to be there.
    func openForWriting() throws(PrefetchError) -> DiskCache {
        var folder = CacheFolder()
        folder.cache = cache
        return try folder.openForRemoving(.modificationDate)
    }
}
