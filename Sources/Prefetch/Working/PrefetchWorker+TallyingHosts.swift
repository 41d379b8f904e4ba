internal import Redis
internal import WebImage

extension PrefetchWorker {
    /// Tells Redis what was asked of hosts since the last time, if anything was. What did not arrive is sent again as it was, with its
    /// token; what came since waits for its turn.
    func tellHosts(through queue: PrefetchQueue) async throws(RedisError) {
        while true {
            if untold == nil {
                guard !hosts.isEmpty else { return }
                untold = (hosts, "\(tallyName).\(tallies)")
                (hosts, tallies) = (HostTally(), tallies + 1)
            }
            guard let (part, token) = untold else { return }
            try await queue.tally(part, worker: name, token: token)
            untold = nil
        }
    }
}
