package import Redis

/// Heals what no single batch owns: keys of the queue with a wrong type, claims without a worker, sets, ready lists and the bell. A batch that
/// Redis half lost is not repaired but marked as `broken`: it is removed, and made again from its list.
package struct QueueHealing: Sendable {
    private let redis: ScriptRunner

    init(_ redis: ScriptRunner) { self.redis = redis }

    /// Heals, safely while workers run; returns a sentence for each change. Does nothing if another worker has done it in this time, unless a key has
    /// to be put aside.
    /// * `interval`: in ms.
    /// * `scans`: whether keys of hosts, sites and workers that are gone are looked at too: a pass over all keys of this Redis. Otherwise it is
    ///   made only where something is missing that it may find.
    package func heal(every interval: Int, scans: Bool = false) async throws(RedisError) -> [String] {
        let keySpace = KeySpace(redis)
        var lines: [String] = []
        for key in try await keySpace.wrongKeys(workers: []) { lines += try await putAside(key) }
        let turn: [RedisArgument] = ["SET", RedisArgument(redis.keys.healed), "1", "NX", "PX", RedisArgument(interval)]
        let isItsTurn = try await redis.read([turn])[0].get().string == "OK"
        // What is gone now has to be made anew at once.
        guard isItsTurn || !lines.isEmpty else { return [] }
        let workers = try await QueueWorkers(redis).names()
        for key in try await keySpace.wrongKeys(ofWorkers: workers) { lines += try await putAside(key) }
        let first = try await agree()
        lines += first.lines
        guard scans || !lines.isEmpty || first.lost > 0 else { return [] }
        let found = try await keySpace.foundKeys()
        for key in try await keySpace.wrongKeys(found) { lines += try await putAside(key) }
        for owner in found.owners where !workers.contains(owner) {
            let count = try await reclaim(from: owner)
            if count > 0 {
                lines.append("gave \(count) jobs of \(owner), which is not registered, back to their lists")
            }
        }
        return lines + (try await agree(isComplete: true, batches: found.batches).lines)
    }

    /// What ``heal(every:)`` would change of sets, ready lists, bell and slots.
    /// * `batches`: found by a scan of all keys.
    package func findings(_ batches: [String]) async throws(RedisError) -> [String] {
        try await agree(isDry: true, batches: batches).lines
    }

    private static let heal = QueueScript.script(PackageResources.HEAL_lua)

    /// * `isComplete`: whether no worker that is not registered has claims.
    private func agree(
        isDry: Bool = false, isComplete: Bool = false, batches: [String] = []
    ) async throws(RedisError) -> (lines: [String], lost: Int) {
        let arguments: [RedisArgument] = [isDry ? "1" : "", isComplete ? "1" : ""]
        let reply = try await redis.run(Self.heal, arguments + batches.map { RedisArgument($0) }).array ?? []
        return ((reply.first?.array ?? []).compactMap(\.string), reply.last?.int ?? 0)
    }

    private static let putAside = QueueScript.script(PackageResources.ASIDE_lua)

    /// Renames a key of a wrong type to `aside:…`, where it stays for a week; returns a sentence, or nothing if it is gone or right meanwhile.
    func putAside(_ key: WrongKey) async throws(RedisError) -> [String] {
        guard try await redis.run(Self.putAside, [RedisArgument(key.name), RedisArgument(key.wanted)]).int == 1 else {
            return []
        }
        return ["put aside \(key.sentence(redis.keys)): it is \(redis.keys.aside(key.name)) for a week"]
    }

    private static let reclaim = QueueScript.script(PackageResources.RECLAIM_lua)

    private func reclaim(from worker: String) async throws(RedisError) -> Int {
        var count = 0
        while true {
            let reply = try await redis.run(Self.reclaim, [RedisArgument(worker)]).array ?? []
            count += reply.first?.int ?? 0
            guard reply.last?.int == 1 else { return count }
        }
    }
}
