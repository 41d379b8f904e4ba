internal import ArgumentParser
internal import Glibc
internal import Prefetch
internal import WebImage

/// `prefetch-coord cache gc`: removes what is old or too much.
struct CacheCollectCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "gc",
        abstract: "Remove images by age, or the oldest until a size is reached.",
        usage: "prefetch-coord cache gc [--max-age D] [--max-size S] [<options>]",
        discussion: """
            Examples:
              prefetch-coord cache gc --max-age 7d --cache ./cache --yes
              prefetch-coord cache gc --max-size 10GiB --dry-run -v

            Images older than --max-age are removed first, then the oldest until the rest
            fits into --max-size. Images of a running batch stay. Temporary files that a
            crash has left are removed after an hour, files that were moved aside as damaged
            after --max-age. It says how many images it would remove and asks; without a
            terminal it needs --yes. Exit code 75 if another process is cleaning this cache.
            """)

    @Option(help: .age("Remove images of this age or older: 12h, 7d; 0 = all."))
    var maxAge: Age?

    @Option(help: .size("Disk space that images may take: 10GiB."))
    var maxSize: ByteSize?

    @Option(help: .value("date", "Date that decides the age of an image: modified, accessed, created or changed."))
    var expireBy = ExpiryDate.modified

    @Flag(help: "Print what would be removed; remove nothing.")
    var dryRun = false

    @Flag(name: .shortAndLong, help: "Print each file.")
    var verbose = false

    @Flag(help: "Print one JSON object; with -v one per file before it.")
    var json = false

    @OptionGroup var confirmation: Confirmation
    @OptionGroup(title: "Cache") var folder: CacheFolder

    func validate() throws {
        guard maxAge != nil || maxSize != nil else {
            throw ValidationError("nothing is removed without a rule: give --max-age, --max-size or both")
        }
    }

    func run() throws {
        let disk = try folder.openForRemoving(expireBy.type)
        var rules = SweepRules(maxAge: maxAge?.seconds, maxSize: maxSize?.bytes)
        rules.removesLeftovers = true
        rules.isDryRun = dryRun
        if !dryRun && !confirmation.yes {
            rules.isDryRun = true
            let plan = try sweep(disk, rules) { _ in }
            rules.isDryRun = false
            let all = SweepReport.Sum(
                count: plan.expired.count + plan.evicted.count, size: plan.expired.size + plan.evicted.size)
            if all.count > 0 {
                let isEmptied = plan.remaining.count == 0 && plan.spared.count == 0
                let whole = isEmptied ? "everything in" : "of \(Wording.count(all.count + plan.remaining.count)) in"
                try confirmation.ask(
                    "remove \(images(all)), \(whole) \(TerminalText.escaped(disk.directory))", "cache gc")
            }
        }
        let report = try sweep(disk, rules) { image in if verbose { tell(image) } }
        if json { Console.print(members(report).text) } else { summary(report).forEach { Console.print($0) } }
    }

    private func sweep(
        _ disk: DiskCache, _ rules: SweepRules, _ removed: (SweptImage) -> Void
    ) throws(PrefetchError) -> SweepReport {
        let report: SweepReport?
        do throws(WebImageError) {
            report = try disk.sweep.run(rules, visit: removed)
        } catch {
            throw PrefetchError(.cacheUnavailable, error.message)
        }
        guard let report else {
            throw PrefetchError(
                .stopped, "another process is sweeping the cache \(TerminalText.escaped(disk.directory))",
                hint: "nothing was done here; when it has ended, the same command again")
        }
        return report
    }

    private func tell(_ image: SweptImage) {
        let rule = image.isExpired ? "max-age" : "max-size"
        if json {
            Console.print(
                JSONText.object([
                    ("path", .string(image.path)), ("rule", .string(rule)), ("allocated_bytes", .int(image.size)),
                    ("date", .string(UTCTime.text(seconds: image.date))),
                ]).text)
        } else {
            Console.print(
                "\(rule): \(TerminalText.escaped(image.path)), \(Wording.bytes(image.size)), \(UTCTime.text(seconds: image.date))"
            )
        }
    }

    private func members(_ report: SweepReport) -> JSONText {
        func sum(_ sum: SweepReport.Sum) -> JSONText {
            .object([("count", .int(sum.count)), ("allocated_bytes", .int(sum.size))])
        }
        return .object([
            ("v", .int(1)), ("dry_run", .bool(dryRun)), ("expired", sum(report.expired)),
            ("evicted", sum(report.evicted)), ("spared", sum(report.spared)), ("remaining", sum(report.remaining)),
            ("temporary_files", .int(report.temporaryFiles)), ("moved_aside", .int(report.movedAside)),
        ])
    }

    private func images(_ sum: SweepReport.Sum) -> String {
        "\(Wording.count(sum.count)) image\(sum.count == 1 ? "" : "s"), \(Wording.bytes(sum.size)) on disk"
    }

    private func summary(_ report: SweepReport) -> [String] {
        let verb = dryRun ? "would remove" : "removed"
        var lines: [String] = []
        if maxAge != nil { lines.append("\(verb) for --max-age: \(images(report.expired))") }
        if maxSize != nil { lines.append("\(verb) for --max-size, the oldest: \(images(report.evicted))") }
        if report.spared.count > 0 {
            lines.append("kept, fetched by a running batch or in use: \(images(report.spared))")
        }
        let litter = report.temporaryFiles + report.movedAside
        if litter > 0 {
            lines.append(
                "\(verb) besides: temporary files \(Wording.count(report.temporaryFiles)), moved aside "
                    + Wording.count(report.movedAside))
        }
        lines.append("\(dryRun ? "would be left" : "left"): \(images(report.remaining))")
        return lines
    }
}

extension CacheFolder {
    /// The cache for a command that removes from it: it has to be there.
    func openForRemoving(_ type: DiskCache.ExpireType) throws(PrefetchError) -> DiskCache {
        let found = try open()
        guard access("\(found.directory)/v1", F_OK) == 0 else {
            throw PrefetchError(
                .notFound, "\(TerminalText.escaped(found.directory)) is not a cache of prefetch",
                hint: "name the cache: --cache DIR")
        }
        do throws(WebImageError) {
            return try DiskCache(
                directory: found.directory, configuration: DiskCache.Configuration(expireType: type))
        } catch {
            throw PrefetchError(
                .cacheUnavailable, error.message, hint: "name a cache that this user may write: --cache DIR")
        }
    }
}
