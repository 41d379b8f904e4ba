internal import ArgumentParser

/// The limit of transfers to one host, which has one meaning for a batch (`run`, `submit`, `retry`) and for a worker.
struct HostLimitOption: ParsableArguments {
    /// Where nobody has said another number.
    static let usual = 6

    @Option(
        name: .customLong("max-per-host"),
        help: ArgumentHelp(
            "Transfers at once to one host, all workers of the queue together; 0 = no limit. (default: \(usual))",
            discussion: """
                A batch's limit overrides its workers'. Literal addresses that --allow-net opens are limited only if this \
                option is given.
                """))
    var maxPerHost: Int?

    func validate() throws {
        if let maxPerHost, maxPerHost < 0 { throw ValidationError("--max-per-host is a number from 0 on") }
    }
}
