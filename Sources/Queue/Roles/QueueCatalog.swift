package import Redis

package struct QueueCatalog: Sendable {
    private let redis: ScriptRunner

    init(_ redis: ScriptRunner) { self.redis = redis }

    /// Ids of all batches Redis still has, oldest first.
    package func ids() async throws(RedisError) -> [String] { try await present(try await batchNames()) }

    /// Ids of the newest batches and of all that are running, oldest first, and how many others there are. Reads each of them in
    /// Redis, in few commands, and a reply for those it returns.
    package func newest(_ most: Int) async throws(RedisError) -> (ids: [String], others: Int) {
        let names = try await batchNames()
        var (newest, end): ([String], Int) = ([], names.count)
        while end > 0, newest.count < most {
            let start = max(0, end - (most - newest.count))
            newest = try await present(Array(names[start..<end])) + newest
            end = start
        }
        guard end > 0 else { return (newest, 0) }
        let running = Set(try await running())
        let open = try await present(names[..<end].filter { running.contains($0) })
        let others = names[..<end].filter { !running.contains($0) }.map { RedisArgument(redis.keys.batch($0)) }
        let counts = try await redis.read(
            stride(from: 0, to: others.count, by: 1000).map { ["EXISTS"] + others[$0..<min($0 + 1000, others.count)] })
        var count = 0
        for reply in counts { count += try Self.count(reply) }
        return (open + newest, count)
    }

    /// Ids in the set of batches, oldest first, including expired ones.
    private func batchNames() async throws(RedisError) -> [String] {
        (try await redis.read([["ZRANGE", RedisArgument(redis.keys.batches), "0", "-1"]])[0].get().array ?? [])
            .compactMap(\.string)
    }

    /// Those of the ids that have not expired. The members of the set of batches outlive them: OPEN removes them.
    private func present(_ ids: [String]) async throws(RedisError) -> [String] {
        guard !ids.isEmpty else { return [] }
        let replies = try await redis.read(ids.map { ["EXISTS", RedisArgument(redis.keys.batch($0))] })
        var present: [String] = []
        for (id, reply) in zip(ids, replies) where try Self.count(reply) == 1 { present.append(id) }
        return present
    }

    /// The number of keys that exist.
    /// - Throws: also for a reply that is not a number: it says nothing about the keys.
    private static func count(_ reply: RedisValue) throws(RedisError) -> Int {
        guard let count = try reply.get().int else {
            throw RedisError(.protocolError, "Redis replied to EXISTS with no number", outcomeUnknown: true)
        }
        return count
    }

    /// The members of the set of batches; nil if that key has a wrong type.
    func listed() async throws(RedisError) -> [String]? {
        let reply = try await redis.read([["ZRANGE", RedisArgument(redis.keys.batches), "0", "-1"]])[0]
        if reply.error?.code == "WRONGTYPE" { return nil }
        return (try reply.get().array ?? []).compactMap(\.string)
    }

    private func newestBatch(of listed: [String]) async throws(RedisError) -> String? {
        for end in stride(from: listed.count, to: 0, by: -64) {
            if let newest = try await present(Array(listed[max(0, end - 64)..<end])).last { return newest }
        }
        return nil
    }

    /// The batch of an id, of a unique prefix of one, or the newest for nil.
    /// - Throws: `notFound` if there is none, or the prefix is ambiguous.
    package func resolve(_ name: String?) async throws(PrefetchError) -> String {
        // Of ten thousand batches only the candidates are read.
        let matches: [String], listed: [String]
        do throws(RedisError) {
            listed = try await batchNames()
            if let name, !name.isEmpty {
                matches = try await present(listed.contains(name) ? [name] : listed.filter { $0.hasPrefix(name) })
            } else {
                matches = try await newestBatch(of: listed).map { [$0] } ?? []
            }
        } catch {
            throw PrefetchError(error)
        }
        if matches.count == 1 { return matches[0] }
        guard let name, !name.isEmpty else {
            if !listed.isEmpty { throw Self.lapsed("every batch of queue '\(queueName)' has lapsed") }
            let others = await otherQueues(with: "").prefix(3).map { "'\($0)'" }.joined(separator: ", ")
            throw PrefetchError(
                .notFound, "there is no batch yet" + (others.isEmpty ? "" : " in queue '\(queueName)'"),
                hint: others.isEmpty
                    ? "make one: prefetch-coord run urls.txt, or submit urls.txt"
                    : "queue \(others) has some: add --queue NAME")
        }
        if matches.isEmpty {
            let lapsed = listed.contains(name) ? [name] : listed.filter { $0.hasPrefix(name) }
            if let batch = lapsed.last {
                let made = await created(batch).map { " of \(UTCTime.text(milliseconds: $0))" } ?? ""
                throw Self.lapsed("the batch '\(batch)'\(made) has lapsed")
            }
            let ids: [String]
            do throws(RedisError) { ids = try await self.ids() } catch { throw PrefetchError(error) }
            let elsewhere = await otherQueues(with: name).prefix(3).map { "'\($0)'" }.joined(separator: ", ")
            let known = ids.suffix(3).reversed().joined(separator: ", ")
            let hint =
                if !elsewhere.isEmpty {
                    "this is queue '\(queueName)', and queue \(elsewhere) has one: add --queue NAME"
                } else if ids.isEmpty {
                    "there is none at all in queue '\(queueName)'; --queue names another"
                } else {
                    "the newest are \(known) in queue '\(queueName)'; all: prefetch-coord status"
                }
            throw PrefetchError(.notFound, "there is no batch '\(name)'", hint: hint)
        }
        throw PrefetchError(
            .notFound, "'\(name)' is the beginning of \(matches.count) batches",
            hint: "give more of it: \(matches.prefix(5).joined(separator: ", "))")
    }

    /// When a batch was made, ms since 1970, by the set of batches; nil: unknown.
    private func created(_ id: String) async -> Int? {
        let score = try? await redis.read([["ZSCORE", RedisArgument(redis.keys.batches), RedisArgument(id)]])[0].get()
        return score?.string.flatMap { Double($0) }.flatMap { Int(exactly: $0) }
    }

    /// The members of the set of batches outlive their records until the next batch is made.
    private static func lapsed(_ what: String) -> PrefetchError {
        PrefetchError(
            .notFound, "\(what): its results were kept for a time after its end (--keep; 7 days if none was given)",
            hint: "run the same list again: what is in the cache is not downloaded again")
    }

    /// Why a queue shows no batch: those that there were have lapsed, or it may be another one that is meant.
    package func absence() async throws(RedisError) -> String {
        if try await !batchNames().isEmpty {
            return "no batches: those that there were have lapsed (--keep; 7 days after their end if none was given)"
        }
        let others = await otherQueues(with: "")
        return others.isEmpty ? "no batches" : "no batches in queue '\(queueName)'; there are \(Self.names(others))"
    }

    /// `'a', 'b' and 3 others`
    private static func names(_ queues: [String]) -> String {
        let named = queues.prefix(5).map { "'\($0)'" }.joined(separator: ", ")
        return named + (queues.count > 5 ? " and \(queues.count - 5) others" : "")
    }

    /// What a worker says of a queue of which Redis knows nothing while it has others; nil if that is not so.
    package func unknownQueue() async throws(RedisError) -> String? {
        guard try await batchNames().isEmpty else { return nil }
        let others = await otherQueues(with: "")
        guard !others.isEmpty else { return nil }
        return "queue '\(queueName)' has no batch; this Redis has the queues \(Self.names(others)) (--queue)"
    }

    /// The running batches of which a list may be the list, newest first, without retries: those of the same path, of the same sources, or with
    /// the same beginning.
    package func running(
        ofList path: String, sources: [String], head: String
    ) async throws(RedisError) -> [BatchStatus] {
        try await QueueBatches(redis).statuses(of: try await running()).filter { status in
            status.retryOf == nil
                && (status.listPath.hasBytes(of: path) || !sources.isEmpty && status.sources == sources
                    || !head.isEmpty && status.listHead == head)
        }.sorted { $1.created < $0.created }
    }

    package func running() async throws(RedisError) -> [String] {
        (try await redis.read([["SMEMBERS", RedisArgument(redis.keys.running)]])[0].get().array ?? []).compactMap(
            \.string
        ).sorted()
    }

    /// A larger Redis is not scanned for the sake of a hint.
    private static let maxKeys = 10_000

    package var queueName: String { String(redis.keys.root.dropFirst("prefetch:{".count).dropLast()) }

    /// Other queues of the same Redis that have a batch of this name or prefix, sorted. Empty if the search is expensive or not allowed.
    func otherQueues(with name: String) async -> [String] {
        do throws(RedisError) {
            guard try await redis.read([["DBSIZE"]])[0].get().int ?? .max <= Self.maxKeys else { return [] }
            let found = try await redis.read([
                ["SCAN", "0", "MATCH", "prefetch:{*}:batches", "COUNT", "\(Self.maxKeys)"]
            ])
            let roots = (try found[0].get().array?.last?.array ?? []).compactMap(\.string)
                .map { String($0.dropLast(":batches".count)) }.filter { $0 != redis.keys.root }
            guard !roots.isEmpty else { return [] }
            let batches = try await redis.read(roots.map { ["ZRANGE", RedisArgument($0 + ":batches"), "0", "-1"] })
            return zip(roots, batches).filter { $1.array?.contains { $0.string?.hasPrefix(name) == true } == true }
                .map { String($0.0.dropFirst("prefetch:{".count).dropLast()) }.sorted()
        } catch {
            return []
        }
    }
}
