internal import FoundationEssentials

/// Options of a batch, followed by every worker that has one of its jobs. Stored in Redis by name, as JSON.
public struct BatchOptions: Sendable, Equatable {
    /// How far each image is checked; `decode` by default, because SDWebImage's "finished" means a decoded image. A worker's own setting is
    /// the minimum.
    public var validate = ValidationLevel.decode
    /// `skip` (the default) or `keep`: what happens to images in formats that cannot be verified, such as HEIC.
    public var unverifiable = UnverifiableFormats.skip
    /// What a power cut may lose; `batch` by default: one sync before a report, so that a counted URL survives it.
    public var durability = Durability.batch
    /// Which failures go onto the blacklist; `smart` by default. ``compat`` sets it too.
    public var blacklist = FailedURLPolicy.smart
    /// When entries of that list lapse, by their reason. SDWebImage's policies have entries that never do, whatever this says.
    public var blacklistTTL = BlacklistTTL()
    /// The cache key of a URL; the URL by default.
    public var cacheKey = CacheKeyFilter.url
    /// Options of its loads.
    public var options: WebImageOptions = []
    /// The version of SDWebImage whose behaviour the batch follows; nil (the default): none. Sets ``blacklist`` and ``blacklistTTL``.
    public var compat: Compatibility? {
        didSet {
            guard let compat else { return }
            (blacklist, blacklistTTL) = (compat.failedURLPolicy, BlacklistTTL(0))
        }
    }
    /// How images are changed before they are stored; nil (the default): not.
    public var variant: ImageVariant?
    /// Which images are taken; all by default.
    public var rules = ImageRules()
    /// Settings of its requests.
    public var requests = RequestSettings()

    /// The defaults.
    public init() {}

    /// SDWebImageRetryFailed, one of ``options``: request listed URLs too; a success takes the URL off the list.
    public var retryFailed: Bool {
        get { options.contains(.retryFailed) }
        set { set(.retryFailed, newValue) }
    }

    /// SDWebImageFromCacheOnly, one of ``options``: no network.
    public var fromCacheOnly: Bool {
        get { options.contains(.fromCacheOnly) }
        set { set(.fromCacheOnly, newValue) }
    }

    private mutating func set(_ option: WebImageOptions, _ isOn: Bool) {
        if isOn { options.insert(option) } else { options.remove(option) }
    }

    /// Whether didFinish and completion are called for a batch that was cancelled. SDWebImage's `cancelPrefetching` calls neither;
    /// everything that follows a batch must honour this.
    public var completesWhenCancelled: Bool { compat == nil }

    /// ``blacklistTTL`` under the batch's policy.
    package var listingTTL: BlacklistTTL {
        blacklist.lapses ? blacklistTTL : BlacklistTTL(0)
    }

    /// How images are changed: ``variant``, with the options `scaleDownLargeImages` and `transformAnimatedImage`; nil: not.
    package var storedVariant: ImageVariant? {
        var stored = changes
        if options.contains(.scaleDownLargeImages) {
            stored.limitBytes = min(stored.limitBytes ?? .max, ImageVariant.scaleDownLimitBytes)
        }
        if options.contains(.transformAnimatedImage) { stored.transformsAnimations = true }
        return stored.isIdentity ? nil : stored
    }

    // MARK: Records

    /// Stable text, for storage and comparison.
    package var encoded: String { Self.text(of: words) }

    package init(encoded: String) { self.init(words: Self.words(in: encoded)) }

    package static func text(of words: [String: [String]]) -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return (try? encoder.encode(words)).map { String(decoding: $0, as: UTF8.self) } ?? "{}"
    }

    package static func words(in text: String) -> [String: [String]] {
        ((try? JSONDecoder().decode([String: Words].self, from: Data(text.utf8))) ?? [:]).mapValues(\.all)
    }

    /// What is no list of texts says nothing, and spoils no others.
    private struct Words: Decodable {
        let all: [String]

        init(from decoder: any Decoder) throws {
            all = (try? decoder.singleValueContainer().decode([String].self)) ?? []
        }
    }
}

extension BatchOptions: SettingRecord {
    /// Which cached images are revalidated; a bare `--refresh-cached` is `=all`.
    private enum Refresh: String, CaseIterable { case all, stale }

    private var refresh: Refresh? {
        get { options.contains(.refreshCached) ? .all : options.contains(.honorCacheControl) ? .stale : nil }
        set {
            set(.refreshCached, newValue == .all)
            set(.honorCacheControl, newValue == .stale)
        }
    }

    private var allowsInvalidSSL: Bool {
        get { options.contains(.allowInvalidSSLCertificates) }
        set { set(.allowInvalidSSLCertificates, newValue) }
    }

    /// ``variant``, which is nil where it changes nothing.
    private var changes: ImageVariant {
        get { variant ?? ImageVariant() }
        set { variant = newValue == ImageVariant() ? nil : newValue }
    }

    package static let settings: [Setting<BatchOptions>] =
        RequestSettings.settings.map { $0.inside(\.requests) } + loads + checks
        + ImageRules.settings.map { $0.inside(\.rules) } + ImageVariant.settings.map { $0.inside(\.changes) } + failures

    private static let loads: [Setting<BatchOptions>] = [
        Setting(
            "--options", \.options,
            .list("list", { names throws(WebImageError) in try WebImageOptions(names: names) }) { $0.names },
            "Options by SDWebImage's names, separated by commas: fromCacheOnly,handleCookies,..."),
        Setting(
            "--refresh-cached", \.refresh, .choice("=stale"), is: .alias,
            "Revalidate cached images (ETag, Last-Modified); =stale: those that are no longer fresh."),
        Setting(
            "--allow-invalid-ssl", \.allowsInvalidSSL, .flag, is: .alias, "Accept invalid TLS certificates (INSECURE).",
            foreign: ["-k", "--insecure", "--no-check-certificate", "--check-certificate"]),
        Setting(
            "--cache-key", \.cacheKey,
            SettingKind(
                "rule", reading: { text throws(WebImageError) in try CacheKeyFilter(text: text) }, { "\($0)" }),
            "Cache key of a URL: url, without-query or s/REGEX/REPLACEMENT/."),
    ].section("Cache use")

    private static let checks: [Setting<BatchOptions>] = [
        Setting(
            "--validate", \.validate, .choice("level") { $0.name },
            "How far an image is checked: none, header, structure (every byte) or decode (every pixel)."),
        Setting(
            "--unverifiable", \.unverifiable, .choice("what"),
            "Images in a format that cannot be verified (HEIC, SVG, TIFF, BMP, ICO): skip or keep."),
        Setting(
            "--durability", \.durability, .choice("what"),
            "What a finished image survives: none, batch (power loss after a batch of writes) or file (each file is synced)."
        ),
    ].section("Verification")

    private static let failures: [Setting<BatchOptions>] = [
        // Before what it sets, which may be given too.
        Setting(
            "--compat", \.compat, .choice("version"), "Behave as SDWebImage 3: sd3.",
            more: """
                Implies --blacklist sd3 --blacklist-ttl 0 --tries 1 --ignore-robots-tag, and 3 transfers for run. A batch \
                cancels the one before it of its --slot, else of the same user and host.
                """),
        Setting(
            "--blacklist", \.blacklist, .choice("policy"),
            "Failures that are remembered and not requested again: smart (permanent ones), sd3, sd4 (SDWebImage's rules) or none."
        ),
        Setting(
            "--blacklist-ttl", \.blacklistTTL, SettingKind("age|list", { BlacklistTTL(argument: $0) }, { $0.text }),
            "How long failed URLs are remembered: 12h for all, or by reason: 404=7d,badImage=1d; 0 = forever.",
            more: "With --blacklist sd3 or sd4 it is forever."),
        Setting("--retry-failed", \.retryFailed, .flag, is: .alias, "Request URLs that are on the blacklist, too."),
    ].section("Failed URLs")
}
