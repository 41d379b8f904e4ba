internal import ArgumentParser
internal import Prefetch
internal import WebImage

/// `prefetch-coord import`: images that are on disk already.
struct ImportCommand: AsyncParsableCommand {
    /// What the images are in.
    enum Form: String, ExpressibleByArgument, CaseIterable {
        case sdwebimage, files, jsonl, folder
    }

    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Import images from a folder or an SDWebImage cache.",
        usage: "prefetch-coord import <path> --from FORM [<options>]",
        discussion: """
            Examples:
              prefetch-coord import Caches --from sdwebimage --list urls.txt
              prefetch-coord import ./images --from files --list urls.txt
              prefetch-coord import manifest.jsonl --from jsonl
              prefetch-coord import ./site --from folder --base-url https://example.org/

            Each image is verified before it is stored; images in the cache and the source
            stay unchanged. The file names of an SDWebImage cache are digests, so it needs
            the list of URLs; files are named by line number, as export --to files names
            them. With a prefetch.lock as list, digests are compared. Exit code 1 if a file
            is not a complete image or differs; each is printed.
            """)

    @Argument(help: "Folder, or manifest.", completion: .file())
    var path: String

    @Option(help: .value("form", "sdwebimage, files, jsonl or folder."))
    var from: Form

    @Option(help: .file("The URLs, one per line."), completion: .file())
    var list: String?

    @Option(help: .url("Common beginning of the URLs of a folder."))
    var baseURL: String?

    @Option(help: .value("version", "SDWebImage version of the names: v3, v4 or v5. (default: any)"))
    var layout: SDWebImageFileName.Layout?

    @Option(
        name: .customLong("validate"),
        help: .value("level", "How far each image is checked: none, header, structure or decode."))
    var level = "decode"

    @Option(help: .size("Largest image."))
    var maxSize = ByteSize(bytes: 64 << 20)

    @Flag(help: "Print one JSON object.")
    var json = false

    @OptionGroup(title: "List") var empty: EmptyListOptions
    @OptionGroup(title: "Cache") var options: CacheOptions
    @OptionGroup(title: "Cache files") var storage: StorageOptions

    func validate() throws {
        guard ValidationLevel(name: level) != nil else {
            throw ValidationError("--validate is none, header, structure or decode, not '\(level)'")
        }
        let wantsList = from == .sdwebimage || from == .files
        if wantsList != (list != nil) {
            throw ValidationError(
                wantsList
                    ? "--from \(from.rawValue) needs the URLs: --list FILE" : "--from \(from.rawValue) takes no list")
        }
        if (from == .folder) != (baseURL != nil) {
            throw ValidationError(
                from == .folder
                    ? "--from folder needs the beginning of the URLs: --base-url https://example.org/"
                    : "--base-url is of --from folder")
        }
        if layout != nil && from != .sdwebimage { throw ValidationError("--layout is of --from sdwebimage") }
        if let baseURL, !URLLines.isURL(baseURL) { throw ValidationError("--base-url is not a URL") }
    }

    func run() async throws {
        let urls = try GivenList.repeatable(list).map { path throws(PrefetchError) in try URLList(path: path) }
        if let list, let urls { try empty.check(urls.total, of: ListFile.name(of: list)) }
        let source = try source()
        let disk = try CacheOpening.forWriting(options.directory, storage.prepare())
        for warning in disk.warnings { Console.note("warning: \(warning)") }
        let work = ImageImport(
            into: disk, rule: options.rule, level: ValidationLevel(name: level) ?? .decode, most: maxSize.bytes
        ) { name, reason in
            Console.note("refused: \(TerminalText.escaped(name)): \(TerminalText.escaped(reason))")
        }
        let tally = try await work.run(source, list: urls)
        if json {
            Console.print(
                JSONText.object([
                    ("v", .int(1)), ("stored", .int(tally.stored)), ("present", .int(tally.present)),
                    ("missing", .int(tally.missing)), ("refused", .int(tally.refused)),
                ]).text)
        } else {
            var text = "\(Wording.count(tally.stored, "image")) imported, \(Wording.count(tally.present)) were there"
            if tally.missing > 0 { text += ", \(Wording.count(tally.missing)) without a file" }
            if tally.refused > 0 { text += ", \(Wording.count(tally.refused)) refused" }
            Console.print(text)
        }
        if tally.refused > 0 { throw ExitCode(1) }
    }

    private func source() throws -> ImageSource {
        switch from {
        case .sdwebimage:
            do throws(WebImageError) { return .sdWebImage(try SDWebImageFolder(path: path, layout: layout)) } catch {
                throw PrefetchError(.notFound, error.message, hint: "name the folder of the cache, or one above it")
            }
        case .files: return .numbered(try NumberedFolder(path: path))
        case .jsonl: return .manifest(path)
        case .folder: return .folder(path, base: baseURL ?? "")
        }
    }
}
