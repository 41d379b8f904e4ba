internal import ArgumentParser
internal import WebImage

/// SDWebImage's options of a load, for all URLs of a batch: some by a flag of their own, every one by its name.
struct LoadOptionArguments: ParsableArguments {
    @Flag(help: "Ask the servers whether what is in the cache has changed; 304 ends as notModified.")
    var refreshCached = false

    @Flag(help: "The same, but not while Cache-Control calls an image fresh.")
    var honorCacheControl = false

    @Flag(help: "Keep ETag, Last-Modified and freshness for a later --refresh-cached.")
    var keepHTTPValidators = false

    @Flag(help: "Verify what is downloaded and keep nothing of it.")
    var cacheMemoryOnly = false

    @Flag(help: "Read the bytes of hits too, and fetch what is damaged.")
    var verifyHits = false

    @Flag(help: "Keep cookies in memory, each for its site.")
    var handleCookies = false

    @Flag(help: "Take certificates nobody vouches for.")
    var allowInvalidSSL = false

    @Option(help: "Options by SDWebImage's names, with commas: retryFailed,lowPriority,…")
    var options: String?

    func validate() throws {
        let names = self.names
        do throws(WebImageError) { _ = try WebImageOptions(names: names) } catch {
            throw ValidationError("--options: \(error.message)")
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
