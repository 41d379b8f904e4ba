internal import Prefetch

/// The environment variables that mean something to the programs. A mistyped one would be a setting that is not there, in silence.
enum EnvironmentNames {
    /// Those that are settings, and what each is.
    static let settings: [(name: String, meaning: String)] =
        [
            ("PREFETCH_REDIS_URL", "the Redis of the queue, as --redis"),
            ("PREFETCH_REDIS_PASSWORD_FILE", "a file with its password, as --redis-password-file"),
            ("PREFETCH_CACHE", "the cache folder, as --cache"),
            ("PREFETCH_STATE", "the folder for what runs keep, as --state"),
            ("PREFETCH_DUCKDB", "the program that reads Parquet"),
            ("PREFETCH_PROGRESS", "how progress is printed, as --progress"),
        ] + FetchSettings.variables.map { ($0.about.variable, "as \($0.about.flag)") }

    /// What the files in docker/ and the unit read, and the programs do not.
    private static let ofOthers: Set<String> = [
        "PREFETCH_DEMO_COUNT", "PREFETCH_IMAGE", "PREFETCH_REVISION", "PREFETCH_SUBNET",
        "PREFETCH_VERSION", "PREFETCH_WORKER_OPTIONS", "PREFETCH_GOLDEN",
    ]

    /// A sentence for each variable that looks like a setting and is none.
    static func warnings(_ environment: [String: String]) -> [String] {
        let names = settings.map(\.name)
        return environment.keys.sorted().compactMap { name in
            guard name.hasPrefix("PREFETCH_"), !names.contains(name), !ofOthers.contains(name) else { return nil }
            let closest = names.map { ($0, EditDistance.between($0, name)) }.min { $0.1 < $1.1 }
            let guess = closest.flatMap { $0.1 <= 4 ? "; did you mean \($0.0)?" : nil }
            return
                "\(TerminalText.escaped(name)) is set, but is not a setting\(guess ?? ": prefetch-coord doctor --settings lists them")"
        }
    }
}
