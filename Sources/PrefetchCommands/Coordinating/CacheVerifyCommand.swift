internal import ArgumentParser
internal import Prefetch
internal import WebImage

/// `prefetch-coord cache verify`: every file against its record.
struct CacheVerifyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Read every image and compare it with its record.",
        usage: "prefetch-coord cache verify [--repair] [<options>]",
        discussion: """
            Examples:
              prefetch-coord cache verify --cache ./cache
              prefetch-coord cache verify --decode --json
              prefetch-coord cache verify --repair

            Exit code 1 if a file is damaged or does not belong to the cache. --repair moves
            such files into the folder bad of the cache, so that the next run fetches them
            again, and verifies images without a record; nothing else changes a file.
            """)

    @Flag(help: "Decode every image, too.")
    var decode = false

    @Flag(help: "Move damaged files aside; verify images without a record.")
    var repair = false

    @Option(help: .count("Files to read at once. (default: the number of processors)"))
    var jobs: Int?

    @Flag(help: "Print one JSON object.")
    var json = false

    @OptionGroup(title: "Cache") var options: CacheOptions

    func validate() throws {
        guard (1...256).contains(jobs ?? 1) else { throw ValidationError("--jobs is 1 to 256, not \(jobs ?? 0)") }
    }

    func run() async throws {
        let disk = repair ? try options.openForWriting() : try options.openExisting()
        let coder = ImageCoder()
        var tally = CacheTally()
        let check = { @Sendable [decode] (entry: CacheEntry) throws(WebImageError) -> String? in
            decode ? try Self.fault(of: entry, coder) : nil
        }
        let checked =
            repair
            ? try await disk.audit.repair(jobs: jobs, coder: coder, check: check) { tally.add($0, $1) }
            : try await disk.audit.verify(jobs: jobs, check: check) { tally.add($0, nil) }
        try disk.audit.strays(movesAside: repair) { path, isMoved in
            tally.addStray("\(disk.directory)/\(path)", isMoved)
        }
        tally.checked = checked
        try tally.sheet.print(asJSON: json)
    }

    private static func fault(of entry: CacheEntry, _ coder: ImageCoder) throws(WebImageError) -> String? {
        let bytes = try entry.bytes()
        do throws(WebImageError) {
            _ = try bytes.span.withUnsafeBytes { bytes throws(WebImageError) in
                try coder.verify(bytes, level: entry.record?.level ?? .structure)
            }
            return nil
        } catch {
            if error.code == .localFault { throw error }
            // A worker with other limits has kept it.
            return error.code == .tooLarge ? nil : error.message
        }
    }
}

/// What a check of a cache has found: `cache verify`.
struct CacheTally: Record {
    var checked = 0
    private var damaged: [(finding: CacheFinding, repair: CacheAudit.Repair?)] = []
    private var strays: [(path: String, isMoved: Bool)] = []
    private var unproved = 0
    private var recorded = 0
    private var moved = 0
    private var isRepair = false

    mutating func add(_ finding: CacheFinding, _ repair: CacheAudit.Repair?) {
        if repair != nil { isRepair = true }
        if repair == .recorded {
            recorded += 1
        } else if finding.isDamaged {
            damaged.append((finding, repair))
        } else {
            unproved += 1
        }
        if repair == .movedAside { moved += 1 }
    }

    mutating func addStray(_ path: String, _ isMoved: Bool) {
        strays.append((path, isMoved))
        if isMoved { moved += 1 }
    }

    static let fields: [Field<CacheTally>] = [
        .version, Field("checked", "files", \.checked), Field("damaged") { $0.damaged.map(\.finding.path) },
        .column("damaged", \.damaged.count),
        Field("without_record", "without a record, verified at their next hit", \.unproved),
        Field("foreign") { $0.strays.map(\.path) }, .column("foreign", \.strays.count),
        Field("moved_aside", "moved aside", \.moved), Field("recorded", "verified now", \.recorded),
    ]

    /// A line for each file that is not as it should be, and the numbers.
    var sheet: Sheet {
        var sheet = Sheet(self)
        sheet.add(
            damaged.map { finding, repair in
                "damaged: \(TerminalText.escaped(finding.path)): \(Self.text(finding.problem))" + Self.text(repair)
            })
        sheet.add(
            strays.map { path, isMoved in
                "foreign: \(TerminalText.escaped(path)): nothing of the cache has this name"
                    + (isMoved ? "; moved aside" : "")
            })
        sheet.add(sum(keeping: 2))
        if !damaged.isEmpty || !strays.isEmpty { sheet.exitCode = 1 }
        return sheet
    }

    private static func text(_ repair: CacheAudit.Repair?) -> String {
        switch repair {
        case .movedAside: "; moved aside"
        case .left: "; left, it changed meanwhile or this user may not"
        case .recorded, nil: ""
        }
    }

    private static func text(_ problem: CacheFinding.Problem) -> String {
        switch problem {
        case .size(let expected, let found): "\(found) bytes, its record says \(expected)"
        case .digest: "its bytes have another SHA-256 than its record"
        case .key: "it is the image of another URL"
        case .notAFile: "not a regular file"
        case .image(let what), .unreadable(let what): TerminalText.escaped(what)
        case .noRecord: "no record"
        case .level(let level): "verified only at \(level.name)"
        }
    }
}
