import ArgumentParser
import Prefetch

@testable import PrefetchCommands

/// The options of a batch by themselves, as in a command line.
typealias BatchWords = SettingOptions<RunBatch>

/// The options of a worker by themselves.
typealias FetchWords = SettingOptions<WorkerFetch>

/// The options of requests by themselves.
typealias RequestWords = SettingOptions<RequestGroup>

enum RequestGroup: SettingGroup {
    static let settings = RequestSettings.settings
}
