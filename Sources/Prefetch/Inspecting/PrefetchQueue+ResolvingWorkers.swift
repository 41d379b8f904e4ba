internal import Redis

extension PrefetchQueue {
    /// The registered worker a person means: its name, or a unique beginning of it.
    /// - Throws: `notFound` where there is none, or several begin so, with those that are there.
    package func resolveWorker(_ name: String) async throws(PrefetchError) -> String {
        let names: [String]
        let past: String?
        do throws(RedisError) {
            names = try await workers().sorted()
            past = try await read([["HGET", RedisArgument(keys.worker(name)), "state"]])[0].get().string
        } catch {
            throw PrefetchError(error)
        }
        if names.contains(name) { return name }
        let matches = names.filter { $0.hasPrefix(name) }
        if matches.count == 1 { return matches[0] }
        let shown = (matches.isEmpty ? names : matches).prefix(10)
        var hint = shown.joined(separator: ", ")
        let more = max(matches.count, matches.isEmpty ? names.count : 0) - shown.count
        if more > 0 { hint += " and \(more) more: prefetch-coord workers" }
        if !matches.isEmpty {
            throw PrefetchError(
                .notFound, "'\(name)' is the beginning of \(matches.count) workers", hint: "give more of it: \(hint)")
        }
        let message =
            switch past.flatMap(WorkerRecord.State.init(rawValue:)) {
            case .left: "the worker '\(name)' has left"
            case .lost: "the worker '\(name)' was lost: others have its jobs"
            default: "there is no worker '\(name)'"
            }
        throw PrefetchError(
            .notFound, message + " in queue '\(queueName)'",
            hint: names.isEmpty ? "no worker is there now" : "the workers that are there: \(hint)")
    }
}
