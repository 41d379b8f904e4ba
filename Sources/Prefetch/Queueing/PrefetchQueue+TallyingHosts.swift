package import Redis

extension PrefetchQueue {
    private static let tallyHosts = script(PackageResources.HOSTS_lua)

    /// Adds what a worker has asked of hosts.
    ///
    /// * `token`: the worker's own for this tally: sent again after a lost reply, it adds nothing.
    package func tally(_ hosts: HostTally, worker: String, token: String) async throws(RedisError) {
        try await tally(hosts.encoded, worker: worker, token: token)
    }

    func tally(
        _ lines: [(batch: String, lines: String)], worker: String, token: String
    ) async throws(RedisError) {
        var arguments = [RedisArgument(worker), RedisArgument(token)]
        for (batch, lines) in lines { arguments += [RedisArgument(batch), RedisArgument(lines)] }
        _ = try await run(Self.tallyHosts, arguments)
    }
}
