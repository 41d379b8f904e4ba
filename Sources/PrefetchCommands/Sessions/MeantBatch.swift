internal import Prefetch
internal import PrefetchModel
internal import Redis

/// The batch that a command is about.
enum MeantBatch {
    /// Batches that are looked at for others that could be meant.
    private static let most = 100

    /// The batch of a name or of the beginning of one, otherwise the newest. Where it was not named and others could be meant, a note says which
    /// one it is, and how to ask for another.
    /// * `command`: what the name of a batch goes behind, such as `failures`.
    /// * `words`: what the command needs to find its queue.
    static func resolve(
        _ name: String?, _ command: String, _ words: String, in queue: PrefetchQueue
    ) async throws(PrefetchError) -> String {
        let id = try await queue.catalog.resolve(name)
        if name?.isEmpty != false { try await tell(id, command, words, queue) }
        return id
    }

    /// Names the batch that was taken because none was named, where there are others than it and its retries.
    static func tell(
        _ id: String, _ command: String, _ words: String, _ queue: PrefetchQueue
    ) async throws(PrefetchError) {
        let (statuses, older): ([BatchStatus], Int)
        do throws(RedisError) {
            let newest = try await queue.catalog.newest(most)
            guard newest.ids.count + newest.others > 1 else { return }
            (statuses, older) = (try await queue.batches.statuses(of: newest.ids), newest.others)
        } catch {
            throw PrefetchError(error)
        }
        // The batches of a chain have the same answer.
        let chain = chain(of: id, statuses)
        let others = statuses.filter { $0.retryOf == nil && !chain.contains(ByteText($0.id)) }
        guard let other = others.last?.id else { return }
        let count = others.count + older
        Console.note(
            "note: this is \(TerminalText.escaped(id)), the newest of \(Wording.count(count + 1)) batches; "
                + (count == 1 ? "the other: " : "another: ")
                + "\(Shell.program) \(command) \(TerminalText.escaped(other))\(words)")
    }

    private static func chain(of id: String, _ statuses: [BatchStatus]) -> Set<ByteText> {
        var chain: Set<ByteText> = [ByteText(id)]
        // Both ways: the earlier ones that it retries, and the later ones.
        for status in statuses.reversed() where chain.contains(ByteText(status.id)) {
            if let parent = status.retryOf { chain.insert(ByteText(parent)) }
        }
        for status in statuses where status.retryOf.map({ chain.contains(ByteText($0)) }) == true {
            chain.insert(ByteText(status.id))
        }
        return chain
    }
}
