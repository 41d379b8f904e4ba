internal import Prefetch
internal import WebImage

/// The cache of a run with the state that this user's runs keep of it, opened once for all that the command does.
struct RunCache: Sendable {
    let disk: DiskCache
    let state: RunState

    /// Opens a cache, created if missing; says what is to be said of it.
    /// - Throws: `cacheUnavailable`, `configuration`, `inputOutput`.
    init(
        _ folder: String, _ states: StateFolder, _ configuration: DiskCache.Configuration = DiskCache.Configuration()
    ) throws(PrefetchError) {
        disk = try CacheOpening.forWriting(folder, configuration)
        for warning in disk.warnings { Console.note("warning: \(warning)") }
        state = try RunState.open(disk.folder, in: states) { Console.note("note: \($0)") }
    }
}
