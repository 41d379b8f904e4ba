/// The views of the dashboard, by the key that opens them.
enum DashView: Int, CaseIterable, Sendable {
    case batch = 1
    case workers
    case failures
    case hosts
    case log

    var title: String {
        switch self {
        case .batch: "batch"
        case .workers: "workers"
        case .failures: "failures"
        case .hosts: "hosts"
        case .log: "log"
        }
    }

    /// What its rows can be sorted by; the first is the default.
    var sortKeys: [String] {
        switch self {
        case .batch: ["newest"]
        case .workers: ["name", "img/s", "finished", "skipped"]
        case .failures: ["count", "name"]
        case .hosts: ["finished", "img/s", "skipped", "name"]
        case .log: ["time"]
        }
    }
}
