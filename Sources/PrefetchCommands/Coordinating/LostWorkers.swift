internal import Prefetch
internal import Redis

/// Prints which workers are lost while a batch is followed in plain lines; `status` asks ``WorkerRecords/lost(since:)``.
struct LostWorkers: Sendable {
    let queue: PrefetchQueue
    /// What the lines begin with.
    let batch: String

    /// Looks every second until the task is cancelled.
    func tell() async {
        var present: Set<String> = []
        while !Task.isCancelled {
            do throws(RedisError) {
                let now = Set(try await queue.workers.names())
                let ends = try await queue.workerRecords.ends(ofWorkers: present.subtracting(now).sorted())
                for (name, end) in ends.sorted(by: { $0.key < $1.key }) where end.state == .lost {
                    Console.note(
                        "\(UTCTime.clock()) \(batch) WARN worker=\(TerminalText.escaped(name)) lost returned=\(end.returned)"
                    )
                }
                present = now
            } catch {
                // Redis is away; the follower of the batch reports that.
            }
            do { try await Task.sleep(for: .seconds(1)) } catch { return }
        }
    }
}
