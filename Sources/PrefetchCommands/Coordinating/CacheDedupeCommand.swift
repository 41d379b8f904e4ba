internal import ArgumentParser
internal import Prefetch
internal import WebImage

/// `prefetch-coord cache dedupe`: equal bytes once on the disk.
struct CacheDedupeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dedupe",
        abstract: "Let images of equal bytes share their blocks on the disk.",
        usage: "prefetch-coord cache dedupe --reflink [<options>]",
        discussion: """
            Examples:
              prefetch-coord cache stat --duplicates
              prefetch-coord cache dedupe --reflink

            Only where the file system can share blocks: Btrfs, and XFS made with
            reflink=1. Each URL keeps its own file with its own date and record.
            """)

    @Flag(help: "By shared blocks, which is the only way there is.")
    var reflink = false

    @Flag(help: "One object of JSON.")
    var json = false

    @OptionGroup(title: "Where") var folder: CacheFolder

    func validate() throws {
        guard reflink else { throw ValidationError("say how: --reflink lets equal files share their blocks") }
    }

    func run() throws {
        let disk = try folder.openForRemoving(.modificationDate)
        var unread = 0
        let groups = try disk.duplicates { path, reason in
            unread += 1
            Console.note("\(TerminalText.escaped(path)): \(TerminalText.escaped(reason))")
        }
        var shared = 0
        for group in groups { shared += try disk.shareBlocks(of: group) }
        let images = groups.reduce(0) { $0 + $1.keys.count }
        if json {
            Console.print(
                JSONText.object([
                    ("v", .int(1)), ("groups", .int(groups.count)), ("images", .int(images)),
                    ("shared_bytes", .int(shared)),
                ]).text)
        } else {
            Console.print(
                "\(Wording.count(images, "image")) in \(Wording.count(groups.count, "group")) of equal bytes; "
                    + "\(Wording.bytes(shared)) are shared now")
        }
        if unread > 0 { throw ExitCode(74) }
    }
}

/// What `cache stat --duplicates` prints.
struct DuplicatesOutput {
    /// Groups that are named in text.
    private static let most = 10
    let json: Bool

    /// Looks, and prints.
    func run(_ disk: DiskCache) throws {
        var unread = 0
        let groups = try disk.duplicates { path, reason in
            unread += 1
            Console.note("\(TerminalText.escaped(path)): \(TerminalText.escaped(reason))")
        }
        let images = groups.reduce(0) { $0 + $1.keys.count }
        let excess = groups.reduce(0) { $0 + $1.size * ($1.keys.count - 1) }
        func paths(_ group: DuplicateImages) -> [String] { group.keys.map { "\(disk.directory)/\($0.path)" } }
        if json {
            let list = groups.map { group in
                JSONText.object([
                    ("sha256", .string(group.digest.hex)), ("bytes", .int(group.size)),
                    ("paths", .array(paths(group).map { .string($0) })),
                ])
            }
            Console.print(
                JSONText.object([
                    ("v", .int(1)), ("images", .int(images)), ("excess_bytes", .int(excess)), ("groups", .array(list)),
                ]).text)
        } else {
            Console.print(
                "\(Wording.count(images, "image")) in \(Wording.count(groups.count, "group")) of equal bytes, "
                    + "\(Wording.bytes(excess)) more than once")
            for group in groups.prefix(Self.most) {
                Console.print("  \(group.digest.hex), \(Wording.bytes(group.size)) each:")
                for path in paths(group) { Console.print("    \(TerminalText.escaped(path))") }
            }
            if groups.count > Self.most {
                Console.print("  and \(Wording.count(groups.count - Self.most, "group")) more; all of them: --json")
            }
        }
        if unread > 0 { throw ExitCode(74) }
    }
}
