internal import ObjectStore
internal import Prefetch
internal import WebImage

/// The environment variables that mean something to the programs. A mistyped one would be a setting that is not there, in silence.
enum EnvironmentNames {
    /// Those that are settings: the names, of which the first that is set counts, what each is, and the option that is the same.
    /// `docs/SETTINGS.md` is made of these rows.
    static let settings: [(names: [String], meaning: String, option: String?)] =
        [
            (["PREFETCH_REDIS_URL", "REDIS_URL"], "the Redis of the queue; `run` uses neither", "--redis"),
            (
                ["PREFETCH_REDIS_PASSWORD_FILE", "REDISCLI_AUTH"],
                "a file with the password of Redis; the password itself", "--redis-password-file"
            ),
            (["PREFETCH_CACHE"], "the cache folder", "--cache"),
            (
                ["PREFETCH_STATE", "XDG_STATE_HOME", "HOME"],
                "the folder for what runs keep: it, `prefetch` in it, `.local/state/prefetch` in it", "--state"
            ),
            (
                ["PREFETCH_DUCKDB"],
                "the program that reads Parquet; otherwise `duckdb` in `PATH`, or `python3` with pyarrow", nil
            ),
            (["HF_TOKEN"], "a token of the Hugging Face hub, for lists at `hf://`", nil),
            (["HF_ENDPOINT"], "the hub, by default `https://huggingface.co`", nil),
            (TrustedAuthorities.variables, "a file of certificate authorities, in place of the system's", "--ca-file"),
            (["TMPDIR"], "where files for a bucket are made, by default `/var/tmp`", nil),
            (["PREFETCH_PROGRESS"], "form of the progress: `auto`, `tty`, `plain`, `json`, `none`", "--progress"),
            (["NO_COLOR", "CLICOLOR_FORCE", "FORCE_COLOR"], "colours, if set and not empty", nil),
        ]
        + S3Settings.variables.map { ($0.names, $0.meaning, nil) }
        + FetchSettings.variables.map {
            ([$0.about.variable], String($0.about.sentence.prefix { $0 != ";" }), $0.about.flag)
        }

    /// What the files in docker/ and the unit read, and the programs do not.
    private static let ofOthers: Set<String> = [
        "PREFETCH_DEMO_COUNT", "PREFETCH_IMAGE", "PREFETCH_REVISION", "PREFETCH_SUBNET",
        "PREFETCH_VERSION", "PREFETCH_WORKER_OPTIONS",
    ]

    /// A sentence for each variable that looks like a setting and is none.
    static func warnings(_ environment: [String: String]) -> [String] {
        let names = settings.flatMap(\.names)
        return environment.keys.sorted().compactMap { name in
            guard name.hasPrefix("PREFETCH_"), !names.contains(name), !ofOthers.contains(name) else { return nil }
            let closest = names.map { ($0, EditDistance.between($0, name)) }.min { $0.1 < $1.1 }
            let guess = closest.flatMap { $0.1 <= 4 ? "; did you mean \($0.0)?" : nil }
            return
                "\(TerminalText.escaped(name)) is set, but is not a setting\(guess ?? ": prefetch-coord doctor --settings lists them")"
        }
    }
}
