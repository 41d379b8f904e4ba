internal import Prefetch
internal import Redis
internal import WebImage

/// Follows one batch to its end with plain progress lines: what `run` and `submit --wait` show.
struct BatchFollower: Sendable {
    let queue: PrefetchQueue
    let id: String
    /// Whether lines are printed.
    let isQuiet: Bool
    /// What to type so that refused addresses are opened.
    let allowNetHint: @Sendable (_ address: String) -> String

    /// Returns the batch once it is done, cancelled or gone; nil where the task was cancelled first.
    func follow() async throws(PrefetchError) -> BatchStatus? {
        var lines = ProgressLines()
        var named: Set<String> = []
        while !Task.isCancelled {
            let status: BatchStatus?
            do throws(RedisError) {
                status = try await queue.status(of: id)
                if let status, status.counts[.refused] > named.count || status.state != .running {
                    for (host, message) in try await queue.refusals(of: id) where named.insert(host).inserted {
                        guard named.count <= 20 else { continue }
                        Console.note("refused: \(TerminalText.escaped(message))")
                        Console.note("hint: if that network is yours, \(allowNetHint(host))")
                    }
                }
            } catch {
                if error.code == .interrupted { return nil }
                throw PrefetchError(error)
            }
            guard let status else {
                throw PrefetchError(
                    .notFound, "Redis knows the batch \(id) no more", hint: "was Redis emptied? submit the list again")
            }
            let load = isQuiet ? (0, 0) : await workerLoad()
            if let line = lines.line(for: status, inFlight: load.0, waitingForHost: load.1), !isQuiet {
                Console.note(line)
            }
            if status.state != .running { return status }
            do { try await Task.sleep(for: .milliseconds(status.elapsed < 2 ? 50 : 200)) } catch { return nil }
        }
        return nil
    }

    /// Transfers in flight, and URLs that wait for their host's turn, over all workers, as of their last sign of life.
    private func workerLoad() async -> (Int, Int) {
        do throws(RedisError) {
            let workers = try await queue.workerFacts()
            return workers.reduce((0, 0)) { sum, facts in
                (sum.0 + (Int(facts["in_flight"] ?? "") ?? 0), sum.1 + (Int(facts["waiting_for_host"] ?? "") ?? 0))
            }
        } catch {
            return (0, 0)
        }
    }
}

/// The end of a batch as an exit code.
enum BatchExit {
    /// 0 all there, 3 some skipped, 4 cancelled.
    static func code(_ status: BatchStatus, allowed: AllowedSkips?) -> Int32 {
        if status.state == .cancelled { return 4 }
        let skipped = status.counts.skipped
        if skipped == 0 || allowed?.allows(skipped, of: status.total) ?? false { return 0 }
        return 3
    }
}
