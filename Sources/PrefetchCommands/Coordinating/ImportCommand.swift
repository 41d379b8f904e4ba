internal import ArgumentParser
internal import Glibc
internal import Prefetch
internal import WebImage

/// `prefetch-coord cache import`: images that are on disk already.
struct ImportCommand: AsyncParsableCommand {
    /// What the images are in.
    enum Form: String, ExpressibleByArgument, CaseIterable {
        case sdwebimage, files, jsonl, folder
    }

    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Verify images that are on disk, and store them.",
        usage: "prefetch-coord cache import <path> --from <form>|--url <url> [<options>]",
        discussion: """
            Examples:
              prefetch-coord cache import Caches --from sdwebimage --list urls.txt
              prefetch-coord cache import ./images --from files --list urls.txt
              prefetch-coord cache import manifest.jsonl --from jsonl
              prefetch-coord cache import ./site --from folder --base-url https://a.test/
              prefetch-coord cache import a.jpg --url https://example.org/a.jpg
              prefetch-coord cache import - --url https://example.org/a.jpg < a.jpg

            Each image is verified before it is stored; images in the cache and the source
            stay unchanged. The file names of an SDWebImage cache are digests, so it needs
            the list of URLs; files are named by line number, as export --format files names
            them. With a prefetch.lock as list, digests are compared. Exit code 1 if a file
            is not a complete image or differs; each is printed.

            --url is of one file, which replaces the image that the URL has. It prints the
            path in the cache; exit code 65 if the file is not a complete image.
            """)

    @Argument(help: "Folder or manifest; with --url an image, or - for standard input.", completion: .file())
    var path: String

    @Option(help: .value("form", "sdwebimage, files, jsonl or folder."))
    var from: Form?

    @Option(help: .url("URL of the image, if there is one."))
    var url: String?

    @Option(help: .file("The URLs, one per line."), completion: .file())
    var list: String?

    @Option(help: .url("Common beginning of the URLs of a folder."))
    var baseURL: String?

    @Option(
        name: .customLong("sdwebimage-version"),
        help: .value("version", "SDWebImage version of the names: v3, v4 or v5. (default: any)"))
    var layout: SDWebImageFileName.Layout?

    @OptionGroup var images: SettingOptions<ImportedImages>

    @Flag(help: "Print one JSON object.")
    var json = false

    @OptionGroup(title: "Cache") var options: CacheOptions
    @OptionGroup(title: "Cache files") var storage: SettingOptions<CacheFiles>

    private var largest: Int { images.record.requests.maxSize ?? 64 << 20 }

    func validate() throws {
        guard (from == nil) != (url == nil) else {
            throw ValidationError("give --from FORM, or --url URL of one image")
        }
        if let url, !URLLines.isURL(url) { throw ValidationError("'\(TerminalText.escaped(url))' is not a URL") }
        let given = from.map { "--from \($0.rawValue)" } ?? "--url"
        let wantsList = from == .sdwebimage || from == .files
        if wantsList != (list != nil) {
            throw ValidationError(
                wantsList
                    ? "\(given) needs the URLs: --list FILE" : "\(given) takes no list")
        }
        if (from == .folder) != (baseURL != nil) {
            throw ValidationError(
                from == .folder
                    ? "--from folder needs the beginning of the URLs: --base-url https://example.org/"
                    : "--base-url is of --from folder")
        }
        if layout != nil && from != .sdwebimage {
            throw ValidationError("--sdwebimage-version is of --from sdwebimage")
        }
        if let baseURL, !URLLines.isURL(baseURL) { throw ValidationError("--base-url is not a URL") }
    }

    func run() async throws {
        if let url { return try storeOne(url) }
        let urls = try GivenList.repeatable(list).map { path throws(PrefetchError) in try URLList(path: path) }
        if let list, let urls { try GivenList.requireURLs(urls.total, of: ListFile.name(of: list)) }
        let source = try source()
        let disk = try CacheOpening.forWriting(options.directory, storage.record.prepareCache())
        for warning in disk.warnings { Console.note("warning: \(warning)") }
        let work = ImageImport(
            into: disk, rule: options.rule, level: images.record.validate, most: largest
        ) { name, reason in
            Console.note("refused: \(TerminalText.escaped(name)): \(TerminalText.escaped(reason))")
        }
        let tally = try await work.run(source, list: urls)
        var sheet = Sheet(tally)
        sheet.add(tally.sum(keeping: 2))
        if tally.refused > 0 { sheet.exitCode = 1 }
        try sheet.print(asJSON: json)
    }

    private func source() throws -> ImageSource {
        switch from {
        case .sdwebimage:
            do throws(WebImageError) { return .sdWebImage(try SDWebImageFolder(path: path, layout: layout)) } catch {
                throw PrefetchError(.notFound, error.message, hint: "name the folder of the cache, or one above it")
            }
        case nil, .files: return .numbered(try NumberedFolder(path: path))
        case .jsonl: return .manifest(path)
        case .folder: return .folder(path, base: baseURL ?? "")
        }
    }

    // MARK: One image

    private func storeOne(_ url: String) throws {
        let bytes = try Self.read(path, most: largest)
        let disk = try CacheOpening.forWriting(options.directory, storage.record.prepareCache())
        for warning in disk.warnings { Console.note("warning: \(warning)") }
        let key = try options.rule.key(for: url)
        do throws(WebImageError) {
            try disk.images.storeVerified(bytes, forKey: key, level: images.record.validate)
        } catch {
            guard error.code == .badImageData || error.code == .unsupportedFormat else { throw error }
            throw PrefetchError(
                .unreadableList, "\(TerminalText.escaped(path)) is not a complete image: \(error.message)",
                hint: "nothing was stored; --validate none stores anything")
        }
        try disk.sync()
        let stored = disk.images.path(of: CacheKey(key))
        var sheet = Sheet(StoredImage(path: stored))
        sheet.add(stored)
        try sheet.print(asJSON: json)
    }

    /// A whole file, or what comes on standard input.
    private static func read(_ path: String, most: Int) throws(PrefetchError) -> [UInt8] {
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

extension ImageImport.Tally: Record {
    static let fields: [Field<Self>] = [
        .version, Field("stored", "imported", \.stored), Field("present", "there already", \.present),
        Field("missing", "without a file", \.missing), Field("refused", "refused", \.refused),
    ]
}

private struct StoredImage: Record {
    let path: String

    static let fields: [Field<Self>] = [.version, Field("path", \.path)]
}
