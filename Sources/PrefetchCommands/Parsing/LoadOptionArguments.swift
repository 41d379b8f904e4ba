internal import ArgumentParser
internal import Prefetch
internal import WebImage

/// SDWebImage's options of a load, for all URLs of a batch: some by an option of their own, every one by its name.
struct LoadOptionArguments: ParsableArguments {
    /// Which cached images are revalidated; a bare `--refresh-cached` is `=all` (``words(_:)``).
    enum Refresh: String, ExpressibleByArgument, CaseIterable { case all, stale }

    @Option(
        help: .value(
            "=stale",
            "Revalidate cached images (ETag, Last-Modified); =stale: those that Cache-Control no longer calls fresh."
        ))
    var refreshCached: Refresh?

    @Option(help: .value("rule", "Cache key of a URL: url, without-query or s/REGEX/REPLACEMENT/."))
    var cacheKey = "url"

    @Flag(help: "Accept invalid TLS certificates (INSECURE).")
    var allowInvalidSSL = false

    @Option(
        help: .list(
            "Options by SDWebImage's names, separated by commas: fromCacheOnly,handleCookies,..."
        ))
    var options: String?

    func validate() throws {
        let names = self.names
        do throws(WebImageError) { _ = try WebImageOptions(names: names) } catch {
            throw ValidationError("--options: \(error.message)")
        }
        guard CacheKeyFilter(cacheKey) != nil else {
            throw ValidationError("--cache-key is url, without-query or s/REGEX/REPLACEMENT/, not '\(cacheKey)'")
        }
    }

    /// A command line for the parser, which knows no option whose value may be left out.
    static func words(_ words: [String]) -> [String] {
        words.map { $0 == "--refresh-cached" ? "--refresh-cached=all" : $0 }
    }

    private var names: [String] {
        (options ?? "").split(separator: ",").map { $0.filter { $0 != " " } }
    }

    /// All that were given, in either way.
    var given: WebImageOptions {
        var all = (try? WebImageOptions(names: names)) ?? []
        switch refreshCached {
        case .all: all.insert(.refreshCached)
        case .stale: all.insert(.honorCacheControl)
        case nil: break
        }
        if allowInvalidSSL { all.insert(.allowInvalidSSLCertificates) }
        return all
    }
}
