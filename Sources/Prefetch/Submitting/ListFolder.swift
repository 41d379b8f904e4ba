/// `.prefetch/lists` of a cache: copies of lists without a file of the user.
package enum ListFolder {
    /// Creates it if missing.
    /// - Returns: its path, below the cache's given path.
    /// - Throws: `cacheUnavailable` if it cannot be created, or a symbolic link would lead elsewhere.
    package static func make(inCache cache: String) throws(PrefetchError) -> String {
        let control = try CacheControl(cache: cache).folder
        try control.make("lists", mode: 0o777)
        _ = try control.folder("lists")
        return "\(cache)/.prefetch/lists"
    }
}
