internal import Prefetch

/// What is said of the states of runs.
enum StateText {
    /// The cache of a state.
    static func cache(_ entry: StateEntry) -> String {
        entry.cache.isEmpty ? "an unknown cache (\(entry.id))" : TerminalText.escaped(entry.cache)
    }

    /// The line of `doctor`.
    static func findings(_ folder: StateFolder) -> [Finding] {
        do throws(PrefetchError) {
            let entries = try folder.entries()
            let gone = entries.filter(\.isOrphan)
            let path = folder.path ?? ""
            let all =
                "\(path) has what runs keep of \(Wording.count(entries.count, "cache")), "
                + Wording.bytes(entries.reduce(0) { $0 + $1.size })
            guard let first = gone.first else {
                return [Finding(.ok, "state", entries.isEmpty ? "\(path) has nothing of a run yet" : all)]
            }
            let named = gone.count == 1 ? cache(first) : "\(cache(first)) and \(Wording.count(gone.count - 1)) more"
            return [
                Finding(
                    .warn, "state", "\(all); not there: \(named)",
                    remedy: "mount the disk, or remove what is left of their runs: prefetch-coord rm --orphans")
            ]
        } catch {
            return [Finding(.fail, "state", error.message, remedy: error.hint)]
        }
    }
}
