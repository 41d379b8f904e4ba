internal import ArgumentParser
internal import Prefetch
internal import WebImage

/// SDWebImage's options of a load, for all URLs of a batch: some by a flag of their own, every one by its name.
struct LoadOptionArguments: ParsableArguments {
    @Flag(help: "Revalidate images that are in the cache (ETag, Last-Modified); a 304 ends as notModified.")
    var refreshCached = false

    @Flag(help: "Revalidate only images that Cache-Control no longer calls fresh.")
    var honorCacheControl = false

    @Flag(help: "Record ETag, Last-Modified and freshness for a later --refresh-cached.")
    var keepHTTPValidators = false

    @Flag(help: "Use no network; a URL that is not in the cache ends as notCached.")
    var fromCacheOnly = false

    @Flag(help: "Verify downloaded images, but do not store them.")
    var cacheMemoryOnly = false

    @Flag(help: "Read the bytes of cache hits as well, and fetch damaged images again.")
    var verifyHits = false

    @Option(help: .value("rule", "Cache key of a URL: url, without-query or s/REGEX/REPLACEMENT/."))
    var cacheKey = "url"

    @Flag(help: "Keep cookies in memory and send them back to their site.")
    var handleCookies = false

    @Flag(help: "Accept invalid TLS certificates (INSECURE).")
    var allowInvalidSSL = false

    @Option(help: .list("Options by SDWebImage's names, separated by commas: retryFailed,lowPriority,..."))
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

    private var names: [String] {
        (options ?? "").split(separator: ",").map { $0.filter { $0 != " " } }
    }

    /// All that were given, in either way.
    var given: WebImageOptions {
        var all = (try? WebImageOptions(names: names)) ?? []
        if refreshCached { all.insert(.refreshCached) }
        if honorCacheControl { all.insert(.honorCacheControl) }
        if keepHTTPValidators { all.insert(.keepHTTPValidators) }
        if cacheMemoryOnly { all.insert(.cacheMemoryOnly) }
        if verifyHits { all.insert(.queryDataWhenInMemory) }
        if handleCookies { all.insert(.handleCookies) }
        if allowInvalidSSL { all.insert(.allowInvalidSSLCertificates) }
        return all
    }
}
