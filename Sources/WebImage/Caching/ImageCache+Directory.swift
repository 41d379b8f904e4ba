internal import Glibc

extension ImageCache {
    /// Where the shared cache is: `$XDG_CACHE_HOME/prefetch`, or `~/.cache/prefetch`.
    /// - Throws: `invalidConfiguration` where the environment names neither.
    public static var defaultDirectory: String {
        get throws(WebImageError) {
            try defaultDirectory { name in getenv(name).map { String(cString: $0) } }
        }
    }

    /// The XDG Base Directory Specification: a path that is not absolute is ignored.
    static func defaultDirectory(_ environment: (String) -> String?) throws(WebImageError) -> String {
        func folder(_ name: String) -> String? { environment(name).flatMap { $0.hasPrefix("/") ? $0 : nil } }
        if let cache = folder("XDG_CACHE_HOME") { return "\(cache)/prefetch" }
        if let home = folder("HOME") { return "\(home)/.cache/prefetch" }
        throw WebImageError(
            .invalidConfiguration,
            "neither XDG_CACHE_HOME nor HOME is an absolute path, so there is no default cache directory")
    }
}
