internal import FoundationEssentials

/// Options of a batch, followed by every worker that has one of its jobs. Stored in Redis by name, as JSON.
public struct BatchOptions: Sendable, Codable, Equatable {
    /// How far each image is checked; `decode` by default, because SDWebImage's "finished" means a decoded image. A worker's own setting is
    /// the minimum.
    public var validate = ValidationLevel.decode
    /// `skip` (the default) or `keep`: what happens to images in formats that cannot be verified, such as HEIC.
    public var unverifiable = UnverifiableFormats.skip
    /// What a power cut may lose; `batch` by default: one sync before a report, so that a counted URL survives it.
    public var durability = Durability.batch
    /// Which failures go onto the list of failed URLs; `smart` by default. ``compat`` sets it too.
    public var blacklist = FailedURLPolicy.smart
    /// When entries of that list lapse, by their reason. SDWebImage's policies have entries that never do, whatever this says.
    public var blacklistTTL = BlacklistTTL()
    /// SDWebImageRetryFailed: request listed URLs too; a success takes the URL off the list.
    public var retryFailed = false
    /// SDWebImageFromCacheOnly: no network.
    public var fromCacheOnly = false
    /// The cache key of a URL; the URL by default.
    public var cacheKey = CacheKeyFilter.url
    /// Further options of its loads; ``retryFailed`` and ``fromCacheOnly`` are separate properties.
    public var options: WebImageOptions = []
    /// The version of SDWebImage whose behaviour the batch follows; nil (the default): none. Sets ``blacklist``.
    public var compat: Compatibility? {
        didSet { if let compat { blacklist = compat.failedURLPolicy } }
    }
    /// How images are changed before they are stored; nil (the default): not.
    public var variant: ImageVariant?
    /// Which images are taken; all by default.
    public var rules = ImageRules()
    /// Settings of its requests.
    public var requests = RequestSettings()

    /// The defaults.
    public init() {}

    /// Whether didFinish and completion are called for a batch that was cancelled. SDWebImage's `cancelPrefetching` calls neither;
    /// everything that follows a batch must honour this.
    public var completesWhenCancelled: Bool { compat == nil }

    /// ``blacklistTTL`` under the batch's policy.
    package var listingTTL: BlacklistTTL {
        blacklist.lapses ? blacklistTTL : BlacklistTTL(0)
    }

    /// Stable text, for storage and comparison.
    package var encoded: String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys]
        guard let data = try? encoder.encode(self) else { return "{}" }
        return String(decoding: data, as: UTF8.self)
    }

    package init(encoded: String) {
        self.init()
        guard let read = try? JSONDecoder().decode(Partial.self, from: Data(encoded.utf8)) else { return }
        compat = read.compat.flatMap(Compatibility.init(rawValue:))
        validate = read.validate.flatMap(ValidationLevel.init(name:)) ?? validate
        unverifiable = read.unverifiable.flatMap(UnverifiableFormats.init(rawValue:)) ?? unverifiable
        durability = read.durability.flatMap(Durability.init(rawValue:)) ?? durability
        blacklist = read.blacklist.flatMap(FailedURLPolicy.init(rawValue:)) ?? blacklist
        blacklistTTL = read.blacklistTTL ?? blacklistTTL
        retryFailed = read.retryFailed ?? retryFailed
        fromCacheOnly = read.fromCacheOnly ?? fromCacheOnly
        cacheKey = read.cacheKey.flatMap { CacheKeyFilter($0) } ?? cacheKey
        options = read.options ?? options
        variant = read.variant
        rules = read.rules ?? rules
        requests = (read.requests ?? requests).bounded
    }

    private struct Partial: Decodable {
        var validate, unverifiable, durability, blacklist, cacheKey, compat: String?
        var blacklistTTL: BlacklistTTL?
        var variant: ImageVariant?
        var rules: ImageRules?
        var requests: RequestSettings?
        var retryFailed, fromCacheOnly: Bool?
        var options: WebImageOptions?
    }

    /// Including ``retryFailed`` and ``fromCacheOnly``.
    package var ofLoads: WebImageOptions {
        var all = options
        if retryFailed { all.insert(.retryFailed) }
        if fromCacheOnly { all.insert(.fromCacheOnly) }
        return all
    }

    /// How images are changed: ``variant``, with the options `scaleDownLargeImages` and `transformAnimatedImage`; nil: not.
    package var storedVariant: ImageVariant? {
        var stored = variant ?? ImageVariant()
        if options.contains(.scaleDownLargeImages) {
            stored.limitBytes = min(stored.limitBytes ?? .max, ImageVariant.scaleDownLimitBytes)
        }
        if options.contains(.transformAnimatedImage) { stored.transformsAnimations = true }
        return stored.isIdentity ? nil : stored
    }

    /// The options in which two batches differ, for messages.
    package func differences(from other: BatchOptions) -> [String] {
        var names: [String] = []
        if validate != other.validate { names.append("--validate \(validate.name), was \(other.validate.name)") }
        if unverifiable != other.unverifiable {
            names.append("--unverifiable \(unverifiable.rawValue), was \(other.unverifiable.rawValue)")
        }
        if durability != other.durability {
            names.append("--durability \(durability.rawValue), was \(other.durability.rawValue)")
        }
        if blacklist != other.blacklist {
            names.append("--blacklist \(blacklist.rawValue), was \(other.blacklist.rawValue)")
        }
        if blacklistTTL != other.blacklistTTL {
            names.append("--blacklist-ttl \(blacklistTTL.text), was \(other.blacklistTTL.text)")
        }
        if retryFailed != other.retryFailed { names.append(retryFailed ? "--retry-failed" : "no --retry-failed") }
        if fromCacheOnly != other.fromCacheOnly {
            names.append(fromCacheOnly ? "option fromCacheOnly" : "no option fromCacheOnly")
        }
        if cacheKey != other.cacheKey { names.append("--cache-key \(cacheKey), was \(other.cacheKey)") }
        if options != other.options {
            names += options.subtracting(other.options).names.map { "option \($0)" }
            names += other.options.subtracting(options).names.map { "no option \($0)" }
        }
        if variant != other.variant {
            names.append(
                "images \(variant?.transformerKey ?? "as they are"), was \(other.variant?.transformerKey ?? "as they are")"
            )
        }
        if rules != other.rules {
            names.append("rules \(rules.text), was \(other.rules.text)")
        }
        names += requests.differences(from: other.requests)
        if compat != other.compat { names.append(compat.map { "--compat \($0.rawValue)" } ?? "no --compat") }
        return names
    }
}
