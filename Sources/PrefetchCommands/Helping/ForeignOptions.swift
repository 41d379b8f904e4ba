internal import Prefetch

/// Options of curl, wget, wget2, aria2c, img2dataset and scrapy that no setting replaces one by one, and what serves their purpose here. Rows of
/// settings have the names of the others.
enum ForeignOptions {
    private static let answers: [(names: [String], answer: String)] = [
        (
            ["--processes", "--processes-count", "--process-count", "--nprocs"],
            "-n, --workers N sets the number of workers"
        ),
        (
            [
                "-o", "-O", "-d", "-P", "--output", "--output-document", "--dir", "--directory-prefix",
                "--output-folder",
                "--output-dir", "--dest", "--destination",
            ],
            "--out DIR writes the images under readable names; --cache DIR names the cache"
        ),
        (["--to"], "--format FORMAT says what is written; --out DIR names a folder, -o FILE a text"),
        (["--output-format"], "--format files, tree, webdataset or parquet says what --out writes"),
        (["--no-proxy", "--noproxy"], "no proxy is used unless --proxy names one"),
        (
            ["-A", "-U", "--agent", "--user-agent", "--user-agent-token"],
            "--contact URL adds a contact address to the User-Agent, -H 'User-Agent: TEXT' replaces it"
        ),
        (["-e", "--referer", "--referrer"], "-H 'Referer: URL' sends a Referer"),
        (
            ["-b", "--cookie", "--load-cookies"],
            "-H 'Cookie: NAME=VALUE' sends a cookie; --options handleCookies keeps those of servers"
        ),
        (
            ["-Y", "--speed-limit", "--lowest-speed-limit", "--speed-time"],
            "transfers below 1000 bytes per second end after 20s; --max-time TIME limits the time of a URL"
        ),
        (
            ["-L", "--location", "--max-redirs", "--max-redirect", "--max-redirects"],
            "redirects are followed, at most 10 of a URL"
        ),
        (
            ["-c", "-C", "--continue", "--continue-at", "--save-session", "--incremental-mode", "--resume"],
            "the same command again continues; no option is needed"
        ),
        (
            ["-i", "--input-file", "--url-list", "--urls", "--url-file"],
            "the list is an argument: FILE, or - for standard input"
        ),
        (["--url-col"], "--url-column NAME names the column of the URLs"),
        (["--caption-col"], "--caption-column NAME names the column of the captions"),
        (["--save-additional-columns", "--columns"], "--keep-columns NAME,... keeps columns for the manifest"),
        (
            ["--resize-mode"],
            "--fit inside (keep_ratio_largest), cover (center_crop) or pad (border) goes with --resize WxH"
        ),
        (["--resize-only-if-bigger"], "smaller images stay as they are; --upscale enlarges them"),
        (
            ["--disable-all-reencoding", "--skip-reencode"],
            "images are stored as their servers send them, unless --resize, --image-format or --strip is given"
        ),
        (
            ["--number-sample-per-shard"],
            "--per-shard N sets the lines of a shard, for --format webdataset and parquet"
        ),
        (
            ["--compute-hash", "--hash", "--checksum"],
            "the SHA-256 of every image is recorded; export --format jsonl writes it"
        ),
        (["--verify-hash"], "--sha256-column NAME names the column with the expected SHA-256"),
        (
            ["--disallowed-header-directives"],
            "noai, noimageai, noindex, noimageindex, noml and none are refused; --ignore-robots-tag"
        ),
        (["--enable-wandb", "--prometheus", "--stats"], "prefetch-coord metrics serves metrics for Prometheus"),
        (
            ["-s", "-S", "--silent", "--no-verbose", "--no-progress", "--no-progress-bar"],
            "-q shows no progress, -qq errors only"
        ),
        (["-V"], "--version prints the version"),
        (["-f", "--fail"], "--allow-failures N or N% sets how many URLs may fail; the exit code is 3 otherwise"),
        (["-I", "--head", "--spider", "--check"], "--dry-run reads the list and fetches nothing"),
        (
            ["-nc", "-N", "--no-clobber", "--timestamping"],
            "images in the cache are not fetched again; --refresh-cached asks the servers"
        ),
        (
            ["-a", "--log", "--log-file", "--output-file"],
            "2> FILE keeps the messages; --transfer-log FILE records each transfer"
        ),
        (["--accept-regex", "--accept"], "--url-filter REGEX selects by URL, --types by the format of the bytes"),
        (["--http1", "--http1.1", "--http1.0"], "HTTP/1.1 is used unless there is --http2"),
        (["-r", "--recursive", "--mirror", "--page-requisites"], "only the URLs of the list are fetched"),
        (["--max-urls", "--sample", "--max-items"], "--limit N fetches the first N URLs of the list"),
        (["--redis-url", "--broker", "--host"], "--redis URL names the Redis"),
        (["-y", "--force", "--assume-yes"], "--yes answers the question"),
        (["--cache-dir", "--cachedir"], "--cache DIR names the cache"),
        (["--older-than", "--age"], "--max-age TIME"),
    ]

    private static let rows = (BatchSettings.settings.map(\.about) + FetchSettings.settings.map(\.about))

    /// `--max-per-host N: transfers at once to one host`.
    private static func answer(_ about: SettingDescription) -> String {
        let value = about.form.placeholder.map { " \($0.prefix { $0 != "|" }.uppercased())" } ?? ""
        let sentence = about.sentence.hasSuffix(".") ? about.sentence.dropLast() : about.sentence[...]
        return "\(about.flag)\(value): \(sentence.prefix(1).lowercased())\(sentence.dropFirst())"
    }

    /// A hint for an option that the command does not have; nil if the option is unknown, or no option here serves its purpose.
    ///
    /// * `known`: the options the command has.
    /// * `elsewhere`: the options of other commands, by name.
    static func hint(for name: String, known: Set<String>, elsewhere: [String: String]) -> String? {
        let plain = name.hasPrefix("--") ? name.replacing("_", with: "-") : String(name.prefix(2))
        let candidates =
            answers.filter { $0.names.contains(name) || $0.names.contains(plain) }.map(\.answer)
            + rows.filter { $0.foreign.contains(name) || $0.foreign.contains(plain) }.map(answer)
        var fallback: String?
        for answer in candidates {
            let options = options(in: answer)
            if options.isEmpty || !known.isDisjoint(with: options) { return answer }
            if fallback == nil, let place = options.lazy.compactMap({ elsewhere[$0] }).first {
                fallback = "\(answer) (an option of \(place))"
            }
            if fallback == nil, answer.hasPrefix("prefetch-coord ") { fallback = answer }
        }
        return fallback
    }

    private static func options(in answer: String) -> [String] {
        answer.split { !($0.isLetter || $0.isNumber || $0 == "-") }.map(String.init)
            .filter { $0.hasPrefix("-") && $0.count > 1 }
    }

    /// For the test: every option that an answer names.
    static var namedOptions: Set<String> {
        Set(answers.flatMap { options(in: $0.answer) }.filter { $0.hasPrefix("--") })
    }
}
