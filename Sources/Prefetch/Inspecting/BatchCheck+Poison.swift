internal import Redis
internal import WebImage

extension BatchCheck {
    /// I6: the way on which a URL becomes `poison`.
    func poisonings(_ snapshot: BatchSnapshot) async throws(RedisError) -> [Finding] {
        deaths(snapshot) + (try await details(snapshot))
    }

    private func deaths(_ snapshot: BatchSnapshot) -> [Finding] {
        var found: [Finding] = []
        var names = Set(snapshot.jobs.compactMap { PrefetchJob.name(ofPayload: $0) })
        for claims in snapshot.owned.values {
            names.formUnion(claims.compactMap { PrefetchJob.name(ofPayload: $0.payload) })
        }
        for (name, count) in snapshot.tries.sorted(by: { $0.key < $1.key }) {
            let job = name.hasSuffix("!") ? String(name.dropLast()) : name
            if !names.contains(job) {
                found.append(finding("I6", "\(count) deaths are counted of \(name), and there is no such job"))
            } else if job != name, count > snapshot.tries[job] ?? 0 {
                found.append(
                    finding(
                        "I6",
                        "\(count) deaths under its mark are counted of \(job), and \(snapshot.tries[job] ?? 0) in all"))
            }
        }
        return found
    }

    private func details(_ snapshot: BatchSnapshot) async throws(RedisError) -> [Finding] {
        let poison = snapshot.outcomes.indices.filter { snapshot.outcomes[$0] == PrefetchOutcome.poison.rawValue }
            .prefix(1000)
        guard !poison.isEmpty else { return [] }
        let kept = try await queue.details(of: batch, indices: Array(poison))
        let keep = snapshot.fields["details"]?.int ?? 100_000
        var found: [Finding] = []
        for index in poison where kept[index] == nil && snapshot.detailsKept < keep {
            found.append(finding("I6", "the URL with the index \(index) ended poison and has no detail"))
        }
        // By hand and in time entries leave the list: only what just happened can be held to it.
        let options = BatchOptions(encoded: snapshot.fields["options"]?.string ?? "{}")
        guard snapshot.isRunning, options.blacklist != FailedURLPolicy.none.rawValue, !options.retryFailed else {
            return found
        }
        // One that was made longer ago than its entries last may have lost some, and so may a list that was at its limit.
        let at = try PrefetchQueue.time(try await queue.read(queue.clockCommands))
        let isOld = options.lapse > 0 && at - (snapshot.fields["created"]?.int ?? 0) > options.lapse
        let urls = kept.sorted { $0.key < $1.key }.map(\.value.url)
        guard !urls.isEmpty, !isOld, try await queue.failedURLLimit().removed == 0 else { return found }
        let listed = try await queue.read([
            ["SMISMEMBER", RedisArgument(queue.keys.failed)] + urls.map { RedisArgument($0) }
        ])
        for (url, isListed) in zip(urls, try listed[0].get().array ?? []) where isListed.int == 0 {
            found.append(finding("I6", "\(url) ended poison and is not on the list of failed URLs"))
        }
        return found
    }
}

extension PrefetchJob {
    /// The job's name in the head of a payload, without a look at the rest.
    static func name(ofPayload payload: [UInt8]) -> String? {
        let words = payload.prefix(200).prefix { $0 != UInt8(ascii: "\n") }.split(separator: UInt8(ascii: " "))
        return words.count > 2 ? String(decoding: words[2], as: UTF8.self) : nil
    }
}
