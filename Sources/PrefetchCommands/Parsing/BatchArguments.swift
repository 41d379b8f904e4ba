public import ArgumentParser
public import Prefetch
internal import WebImage

/// What a batch asks of the workers: the same on `run` and `submit`.
struct BatchArguments: ParsableArguments {
    @Option(name: .customLong("validate"), help: "How far each image is checked: none, header, structure, decode.")
    var level = "decode"

    @Option(
        help: "Images in formats that cannot be verified (AVIF, HEIC, SVG, TIFF, BMP, ICO, ...): skip or keep.")
    var unverifiable = UnverifiableFormats.skip

    @Option(help: "Digest kept with each file: sha256, none.")
    var digest = "sha256"

    @Option(help: "What a counted file survives: none, batch (a power cut), file.")
    var durability = "batch"

    @Option(
        help:
            "Which failures are not asked again: smart (what will not heal by itself), sd3 and sd4 (SDWebImage's rules), none. (default: smart)"
    )
    var blacklist: String?

    @Option(
        name: .customLong("blacklist-ttl"),
        help: "Time after which a listed URL is asked again; 0 = never. (default: 1d)")
    var blacklistTTL: TimeSpan?

    @Option(
        help: ArgumentHelp(
            "Behave as SDWebImage 3 did: sd3.",
            discussion: """
                Means --blacklist sd3 --blacklist-ttl 0; a cancel tells neither didFinish nor completion. The original asks \
                once for each URL: that is --tries 1 of run and of the workers.
                """))
    var compat: String?

    @Flag(help: "Ask the network for listed URLs too.")
    var retryFailed = false

    @Flag(help: "No network: what is not in the cache ends as notCached.")
    var fromCacheOnly = false

    @Option(
        help: """
            How the list is written: auto, plain (one URL a line), jsonl (one JSON object a line), csv, tsv, sitemap \
            (of an index, the sitemaps beside it).
            """)
    var inputFormat = ListFormat.auto

    @OptionGroup(title: "Request options") var requests: RequestArguments

    @OptionGroup(title: "Load options") var load: LoadOptionArguments

    @Option(help: "Key in the cache: url, without-query, s/regex/replacement/.")
    var cacheKey = "url"

    @Flag(help: "The list is a prefetch.lock: images of other bytes than it says end as mismatch.")
    var locked = false

    @Option(help: "Name of the batch; its list's name and hash by default.")
    var name: String?

    @Option(help: "Which jobs start first.")
    var order = PrefetchOrder.fifo

    @Option(help: "Priority of the batch.")
    var priority = PrefetchPriority.normal

    @Option(help: "Jobs that wait in Redis, which bounds its memory: auto, all, or a number.")
    var window = "auto"

    @Option(help: "URLs a job, 1 to 256; by default a 64th of the list, and at least 4.")
    var jobSize: Int?

    @Option(help: "Time a finished batch stays in Redis; 0 = for ever.")
    var keep = TimeSpan(seconds: 7 * 86_400)

    @Option(help: "Entries of skipped URLs kept with their details.")
    var keepDetails = 100_000

    @Option(help: "Time from its making after which the batch is ended: 10m, 2h.")
    var deadline: TimeSpan?

    @Option(help: "How many URLs have to end until the batch is ended: P%, or a number. (default: all)")
    var finishAt: String?

    func validate() throws {
        guard ValidationLevel(name: level) != nil else {
            throw ValidationError("--validate is none, header, structure or decode, not '\(level)'")
        }
        guard ["sha256", "none"].contains(digest) else {
            throw ValidationError("--digest is sha256 or none, not '\(digest)'")
        }
        guard ["none", "batch", "file"].contains(durability) else {
            throw ValidationError("--durability is none, batch or file, not '\(durability)'")
        }
        if let blacklist, FailedURLPolicy(rawValue: blacklist) == nil {
            throw ValidationError("--blacklist is smart, sd3, sd4 or none, not '\(blacklist)'")
        }
        try validateCompat()
        guard CacheKeyRule(cacheKey) != nil else {
            throw ValidationError("--cache-key is url, without-query or s/regex/replacement/, not '\(cacheKey)'")
        }
        if let name, !PrefetchQueue.isValidBatchID(name) {
            throw ValidationError("--name is 1 to 64 letters, digits, '.', '_' or '-'")
        }
        guard window == "auto" || window == "all" || (Int(window) ?? 0) > 0 else {
            throw ValidationError("--window is auto, all or a number of jobs, not '\(window)'")
        }
        if let jobSize, !(1...256).contains(jobSize) { throw ValidationError("--job-size is a number from 1 to 256") }
        guard keepDetails >= 0 else { throw ValidationError("--keep-details is a number from 0 on") }
        if let deadline, !(0.001...3_153_600_000).contains(deadline.seconds) {
            throw ValidationError("--deadline is a time above 0, at most 100 years: 90s, 10m, 2h")
        }
        if let finishAt, !Self.isFinishMark(finishAt) {
            throw ValidationError("--finish-at is a share up to 100% or a number of URLs, above 0, not '\(finishAt)'")
        }
    }

    /// `99.9%` or `950`, as the scripts of the queue read it.
    private static func isFinishMark(_ text: String) -> Bool {
        let isShare = text.hasSuffix("%")
        let digits = isShare ? text.dropLast() : text[...]
        let isPlain = digits.utf8.allSatisfy { (0x30...0x39).contains($0) || (isShare && $0 == 0x2E) }
        guard isPlain, let number = Double(digits), number > 0 else { return false }
        return number <= (isShare ? 100 : 1e12)
    }

    /// Milliseconds from the batch's making to its deadline.
    var limit: Int? { deadline.map { Int(($0.seconds * 1000).rounded()) } }

    private func validateCompat() throws {
        guard let compat else { return }
        guard compat == "sd3" else { throw ValidationError("--compat is sd3, not '\(compat)'") }
        if let blacklist, blacklist != compat {
            throw ValidationError("--compat sd3 means --blacklist sd3, so --blacklist \(blacklist) contradicts it")
        }
        if let blacklistTTL, blacklistTTL.seconds != 0 {
            throw ValidationError(
                "--compat sd3 means --blacklist-ttl 0, so --blacklist-ttl \(blacklistTTL.defaultValueDescription) "
                    + "contradicts it")
        }
    }

    /// As the batch keeps them.
    var options: BatchOptions {
        var options = BatchOptions()
        options.validate = level
        options.unverifiable = unverifiable
        options.digest = digest
        options.durability = durability
        options.blacklist = blacklist ?? compat ?? options.blacklist
        options.blacklistTTL = blacklistTTL?.seconds ?? (compat == nil ? options.blacklistTTL : 0)
        options.compat = compat ?? ""
        let given = load.given
        options.retryFailed = retryFailed || given.contains(.retryFailed)
        options.fromCacheOnly = fromCacheOnly || given.contains(.fromCacheOnly)
        options.options = given.subtracting([.retryFailed, .fromCacheOnly])
        options.cacheKey = cacheKey
        options.requests = requests.settings
        return options
    }
}

extension UnverifiableFormats: ExpressibleByArgument {}
extension ListFormat: ExpressibleByArgument {}
extension PrefetchOrder: ExpressibleByArgument {}
extension PrefetchPriority: ExpressibleByArgument {}
