/// `.prefetch/lists` of a cache: copies of the lists that are no files of their user's own.
package enum ListFolder {
    /// Makes it where it is missing.
    /// - Returns: its path, below the cache as it was named.
    /// - Throws: `cacheUnavailable` where it cannot be made, or where a symbolic link would lead elsewhere.
    package static func make(inCache cache: String) throws(PrefetchError) -> String {
        let control = try CacheControl(cache: cache).folder
        try control.make("lists", mode: 0o777)
        _ = try control.folder("lists")
        return "\(cache)/.prefetch/lists"
    }
}
