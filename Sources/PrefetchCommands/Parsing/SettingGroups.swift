public import ArgumentParser
internal import FoundationEssentials
public import Prefetch

/// What a batch is given: the same on all commands that make one.
protocol BatchGroup: SettingGroup where Root == BatchSettings {}

extension BatchGroup {
    static func contradiction(_ root: BatchSettings, _ given: Set<String>) -> String? { root.contradiction(given) }
}

/// By `run`, whose queue has no other batches.
enum RunBatch: BatchGroup {
    static let settings = BatchSettings.settings.filter { $0.about.traits.isDisjoint(with: [.library, .queue]) }
}

enum SubmitBatch: BatchGroup {
    static let settings = BatchSettings.settings.filter { !$0.about.traits.contains(.library) }
}

/// The options of `retry`, without a name, which follows from the earlier batch, and without `--retry-failed`, which it implies.
enum RetryBatch: BatchGroup {
    static let settings = RunBatch.settings.filter { !["name", "retry_failed"].contains($0.name) }
}

extension SettingOptions where Group: BatchGroup {
    /// The settings of the batch, with the files of `@FILE`; each is read once, so it may be a pipe.
    /// - Throws: `configuration` where one cannot be read or used.
    func settings() throws(PrefetchError) -> BatchSettings {
        var all = record
        all.options.requests.headers = try record.options.requests.headers.map { lines throws(PrefetchError) in
            try OptionFile.lines(lines, "--header", wants: "Name: value", where: RequestSettings.isHeader)
        }
        // The default of the commands alone: SDWebImage ignores the header.
        let obeys = all.options.requests.respectsRobotsTag ?? (all.options.compat == nil)
        all.options.requests.respectsRobotsTag = obeys
        return all
    }
}

extension BatchSettings {
    /// Removes and returns the headers that may carry a secret: every reader of Redis could read them in the record of the batch.
    mutating func takeSecretHeaders() -> [String] {
        let all = options.requests.headers ?? []
        let harmless = all.filter { RequestSettings.header($0)?.isSafeAcrossSites == true }
        options.requests.headers = harmless.isEmpty ? nil : harmless
        return all.filter { RequestSettings.header($0)?.isSafeAcrossSites != true }
    }
}

/// What `set` changes of a batch that runs.
enum LiveBatch: SettingGroup {
    static let settings = BatchSettings.settings.filter { $0.about.traits.contains(.live) }
}

/// What `set` changes of workers.
enum LiveWorker: SettingGroup {
    static let settings = FetchSettings.settings.filter { $0.name == "max_concurrent_downloads" }
}

/// How a worker works.
protocol FetchGroup: SettingGroup where Root == FetchSettings {}

extension FetchGroup {
    static func contradiction(_ root: FetchSettings, _ given: Set<String>) -> String? { root.contradiction(given) }
}

enum WorkerFetch: FetchGroup {
    static let settings = FetchSettings.settings
}

/// What `run` and `retry` hand to their workers.
enum RunFetch: FetchGroup {
    static let settings = FetchSettings.settings.filter { !$0.about.traits.contains(.process) }
}

/// How a command makes keys of URLs.
enum KeyRules: SettingGroup {
    static let settings = BatchOptions.settings.filter { $0.name == "cache_key" }
}

/// How far images that are there already are checked, and how large they may be.
enum ImportedImages: SettingGroup {
    static let settings = BatchOptions.settings.filter { ["validate", "max_size"].contains($0.name) }
}

/// Caches that a command looks up behind the one it has.
enum LowerCaches: FetchGroup {
    static let settings = FetchSettings.settings.filter { $0.name == "read_only_cache" }
}

/// How a command that writes images makes their files.
enum CacheFiles: FetchGroup {
    static let settings = FetchSettings.settings.filter { $0.name == "cache_mode" }
}

/// The parts of the help into which the rows of a command's settings are put.
enum SettingTitles {
    /// What swift-argument-parser knows as the title of all settings of a batch, and of all of a worker.
    static let batch = "Batch", worker = "Worker"

    private static let titles = [batch: titles(BatchSettings.self), worker: titles(FetchSettings.self)]

    private static func titles<Root: SettingRecord>(_ root: Root.Type) -> [String: String] {
        Dictionary(Root.settings.map { ($0.about.flag, $0.about.section) }) { one, _ in one }
    }

    /// The title of an option; nil if it has none.
    static func title(of names: [String], in group: String?) -> String? {
        group.map { group in names.lazy.compactMap { titles[group]?[$0] }.first ?? group }
    }
}

// MARK: - Values

extension TimeSpan: ExpressibleByArgument {
    package var defaultValueDescription: String { seconds < 1 ? "\(Int(seconds * 1000))ms" : description }
}
extension Age: ExpressibleByArgument {
    package var defaultValueDescription: String { description }
}
extension ByteSize: ExpressibleByArgument {
    package var defaultValueDescription: String { description }
}
extension PrefetchSettings.Share: ExpressibleByArgument {}

/// What swift-argument-parser does not know of values: that one may be left out, and that a word such as `-3` is one.
enum OptionValues {
    /// Words that it takes for the same command line.
    static func words(_ words: [String]) -> [String] {
        var all: [String] = []
        var isOperand = false
        for word in words {
            isOperand = isOperand || word == "--"
            if !isOperand, word.first == "-", Double(word) != nil, let option = all.last, isOption(option) {
                all[all.count - 1] = "\(option)=\(word)"
            } else {
                all.append(word == "--refresh-cached" ? "--refresh-cached=all" : word)
            }
        }
        return all
    }

    private static func isOption(_ word: String) -> Bool {
        word.count > 1 && word.first == "-" && word != "--" && !word.contains("=") && Double(word) == nil
    }
}
