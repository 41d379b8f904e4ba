public import ArgumentParser
public import Prefetch
internal import WebImage

/// A command with the options of a batch.
///
/// The groups are properties of the command, not of a group of their own: debug builds of swift-argument-parser build a group five times for
/// each level of nesting.
protocol BatchOptionGroups {
    var requests: RequestArguments { get }
    var load: LoadOptionArguments { get }
    var checks: CheckArguments { get }
    var selection: RuleArguments { get }
    var variant: VariantArguments { get }
    var failed: FailedURLArguments { get }
    var record: RecordArguments { get }
}

extension BatchOptionGroups {
    var batch: BatchArguments {
        BatchArguments(
            requests: requests, load: load, checks: checks, selection: selection, variant: variant, failed: failed,
            record: record)
    }
}

/// What a batch asks of the workers: the same on `run` and `submit`.
struct BatchArguments {
    let requests: RequestArguments
    let load: LoadOptionArguments
    let checks: CheckArguments
    let selection: RuleArguments
    let variant: VariantArguments
    let failed: FailedURLArguments
    let record: RecordArguments

    /// As the batch keeps them.
    var options: BatchOptions {
        var options = BatchOptions()
        options.compat = failed.compat.flatMap(Compatibility.init(rawValue:))
        options.validate = ValidationLevel(name: checks.level) ?? options.validate
        options.unverifiable = checks.unverifiable
        options.durability = Durability(rawValue: checks.durability) ?? options.durability
        options.blacklist = failed.blacklist.flatMap(FailedURLPolicy.init(rawValue:)) ?? options.blacklist
        options.blacklistTTL = failed.blacklistTTL ?? (failed.compat == nil ? options.blacklistTTL : BlacklistTTL(0))
        let given = load.given
        options.retryFailed = failed.retryFailed || given.contains(.retryFailed)
        options.fromCacheOnly = given.contains(.fromCacheOnly)
        options.options = given.subtracting([.retryFailed, .fromCacheOnly])
        options.cacheKey = CacheKeyFilter(load.cacheKey) ?? options.cacheKey
        options.variant = variant.variant
        options.rules = selection.rules
        options.requests = requests.settings
        // The default of the commands alone: SDWebImage knows no such header.
        options.requests.respectsRobotsTag = options.requests.respectsRobotsTag ?? (failed.compat == nil)
        return options
    }

    func validate() throws {
        guard checks.level == "none", !selection.rules.isEmpty else { return }
        throw ValidationError(
            "--validate none reads nothing of an image, and \(selection.rules.text) needs its header: use --validate header"
        )
    }
}

/// How far images are checked, and what a finished one is worth after a power cut.
struct CheckArguments: ParsableArguments {
    @Option(
        name: .customLong("validate"),
        help: .value(
            "level",
            "How far an image is checked: none, header, structure (every byte) or decode (every pixel)."
        ))
    var level = "decode"

    @Option(help: "Images in a format that cannot be verified (HEIC, SVG, TIFF, BMP, ICO): skip or keep.")
    var unverifiable = UnverifiableFormats.skip

    @Option(
        help:
            "What a finished image survives: none, batch (power loss after a batch of writes) or file (each file is synced)."
    )
    var durability = "batch"

    func validate() throws {
        guard ValidationLevel(name: level) != nil else {
            throw ValidationError("--validate is none, header, structure or decode, not '\(level)'")
        }
        guard ["none", "batch", "file"].contains(durability) else {
            throw ValidationError("--durability is none, batch or file, not '\(durability)'")
        }
    }
}

/// Which failures are remembered, for how long, and what that means for a batch.
struct FailedURLArguments: ParsableArguments {
    @Option(
        help: .value(
            "policy",
            "Failures that are remembered and not requested again: smart (permanent ones), sd3, sd4 (SDWebImage's rules) or none. (default: smart)"
        ))
    var blacklist: String?

    @Option(
        name: .customLong("blacklist-ttl"),
        help: ArgumentHelp(
            "How long failed URLs are remembered: 12h for all, or by reason: 404=7d,badImage=1d; 0 = forever. (default: 404=7d,410=30d,451=30d,badImage=1d,poison=7d)",
            discussion:
                "With --blacklist sd3 or sd4 it is forever.",
            valueName: "age|list"))
    var blacklistTTL: BlacklistTTL?

    @Flag(help: "Request URLs that are on the blacklist, too.")
    var retryFailed = false

    @Option(
        help: ArgumentHelp(
            "Behave as SDWebImage 3: sd3.",
            discussion: """
                Implies --blacklist sd3 --blacklist-ttl 0 --tries 1 --ignore-robots-tag, and 3 transfers for run. A batch \
                cancels the one before it of its --slot, else of the same user and host.
                """, valueName: "version"))
    var compat: String?

    func validate() throws {
        if let blacklist, FailedURLPolicy(rawValue: blacklist) == nil {
            throw ValidationError("--blacklist is smart, sd3, sd4 or none, not '\(blacklist)'")
        }
        guard let compat else { return }
        guard Compatibility(rawValue: compat) != nil else {
            throw ValidationError("--compat is sd3, not '\(compat)'")
        }
        if let blacklist, blacklist != compat {
            throw ValidationError(
                "--compat \(compat) implies --blacklist \(compat), so --blacklist \(blacklist) contradicts it")
        }
        if let blacklistTTL, blacklistTTL != BlacklistTTL(0) {
            throw ValidationError(
                "--compat \(compat) implies --blacklist-ttl 0, so --blacklist-ttl \(blacklistTTL.text) contradicts it")
        }
    }
}

/// A batch in the queue: its name, its end and how long Redis keeps it.
struct RecordArguments: ParsableArguments {
    @Option(help: .name("Name of the batch. (default: the name of the list and a hash of it)"))
    var name: String?

    @Option(help: .time("Cancel the batch after this time: 10m, 2h. (default: no limit)"))
    var deadline: TimeSpan?

    @Option(
        help: ArgumentHelp(
            "Cancel the batch once more URLs than this have failed; see --allow-failures. (default: never)",
            discussion: "A share counts from 1,000 ended URLs on.", valueName: "n|n%"))
    var maxFailures: String?

    @Option(help: .age("How long a finished batch stays in Redis; 0 = forever."))
    var keep = Age(seconds: 7 * 86_400)

    func validate() throws {
        if let name, !PrefetchQueue.isValidBatchID(name) {
            throw ValidationError("--name is 1 to 64 letters, digits, '.', '_' or '-'")
        }
        if let deadline, !(0.001...3_153_600_000).contains(deadline.seconds) {
            throw ValidationError("--deadline is a time above 0, at most 100 years: 90s, 10m, 2h")
        }
        if let maxFailures, !Self.isFailureLimit(maxFailures) {
            throw ValidationError("--max-failures is a number of URLs or a share up to 100%, not '\(maxFailures)'")
        }
    }

    /// `5%` or `1000`; 0 allows none.
    private static func isFailureLimit(_ text: String) -> Bool {
        text == "0" || isFinishMark(text)
    }

    /// `99.9%` or `950`, as the scripts of the queue read it.
    static func isFinishMark(_ text: String) -> Bool {
        let isShare = text.hasSuffix("%")
        let digits = isShare ? text.dropLast() : text[...]
        let isPlain = digits.utf8.allSatisfy { (0x30...0x39).contains($0) || (isShare && $0 == 0x2E) }
        guard isPlain, let number = Double(digits), number > 0 else { return false }
        return number <= (isShare ? 100 : 1e12)
    }

    /// Milliseconds from the creation of the batch to its deadline.
    var timeLimit: Int? { deadline.map { Int(($0.seconds * 1000).rounded()) } }
}

/// What only `submit` is told: the turn of a batch among others, how it is cut into jobs, and when enough of it has ended.
struct QueueArguments: ParsableArguments {
    @Option(help: "Priority among the batches of the queue: high, normal or low.")
    var priority = PrefetchPriority.normal

    @Option(help: "Which jobs start first: fifo or lifo.")
    var order = PrefetchOrder.fifo

    @Option(help: .share("End the batch when this many of its URLs have ended. (default: all)"))
    var finishAt: String?

    @Option(help: .count("Jobs waiting in Redis, which bounds its memory: auto, all or a number."))
    var window = "auto"

    @Option(help: .count("URLs per job, 1 to 256. (default: a 64th of the list, at least 4)"))
    var jobSize: Int?

    func validate() throws {
        guard window == "auto" || window == "all" || (Int(window) ?? 0) > 0 else {
            throw ValidationError("--window is auto, all or a number of jobs, not '\(window)'")
        }
        if let jobSize, !(1...256).contains(jobSize) { throw ValidationError("--job-size is a number from 1 to 256") }
        if let finishAt, !RecordArguments.isFinishMark(finishAt) {
            throw ValidationError("--finish-at is a share up to 100% or a number of URLs, above 0, not '\(finishAt)'")
        }
    }

    /// The same for a submission.
    var turn: BatchTurn {
        BatchTurn(priority: priority, order: order, finishAt: finishAt, window: window, jobSize: jobSize)
    }
}

/// ``QueueArguments``, or their defaults.
struct BatchTurn: Sendable {
    var priority = PrefetchPriority.normal
    var order = PrefetchOrder.fifo
    var finishAt: String?
    var window = "auto"
    var jobSize: Int?
}

extension UnverifiableFormats: ExpressibleByArgument {}
extension ListFormat: ExpressibleByArgument {}
extension PrefetchOrder: ExpressibleByArgument {}
extension PrefetchPriority: ExpressibleByArgument {}
