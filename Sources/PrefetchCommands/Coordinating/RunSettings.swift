internal import Prefetch

/// How a run works, wherever its URLs come from.
struct RunSettings: Sendable {
    /// The cache folder.
    var cache: String
    /// The folder for the state of runs, where one was named.
    var state: String?
    /// The queue in the private Redis.
    var queue = "default"
    /// Worker processes.
    var workers: Int
    var allowFailures: PrefetchSettings.Share?
    var json: Bool
    /// Never `auto`.
    var progress: ProgressMode
    var isColoured: Bool
    var verbosity: Verbosity
    var fetch: FetchSettings
    /// What is written at the end.
    var outputs: [BatchOutput.Target] = []
    /// Whether they may replace any file.
    var overwrites = false
    /// Whether workers show secrets of URLs in what they write.
    var showsSecrets = false

    /// What a command needs to find the same cache and queue, as it has to be typed.
    var location: String {
        "--cache \(Shell.quoted(Shell.path(cache)))"
            + (state.map { " --state \(Shell.quoted(Shell.path($0)))" } ?? "")
            + (queue == "default" ? "" : " --queue \(queue)")
    }
}
