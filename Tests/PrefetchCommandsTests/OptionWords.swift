import ArgumentParser
import Prefetch

@testable import PrefetchCommands
@testable import prefetch_coord

/// The options of a batch by themselves, as in a command line.
typealias BatchWords = SettingOptions<RunBatch>

/// The options of a worker by themselves.
typealias FetchWords = SettingOptions<WorkerFetch>

/// The options of requests by themselves.
typealias RequestWords = SettingOptions<RequestGroup>

enum RequestGroup: SettingGroup {
    static let settings = RequestSettings.settings
}

/// The command that a line of `prefetch-coord` is parsed into, as the program parses it.
func command(_ words: [String]) throws -> any ParsableCommand {
    let path = CommandPath(words, of: CoordCommand.self)
    return try SettingWords.parse(path.command, Array(words.dropFirst(path.words.count - 1)))
}
