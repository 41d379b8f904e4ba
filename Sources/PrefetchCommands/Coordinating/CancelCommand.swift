internal import ArgumentParser
internal import Prefetch
internal import Redis
internal import WebImage

/// `prefetch-coord cancel`: ends a batch now.
struct CancelCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cancel",
        abstract: "Cancel a batch; its open URLs count as cancelled.",
        usage: "prefetch-coord cancel [<batch>] [<options>]",
        discussion: """
            Examples:
              prefetch-coord cancel urls-7f3a --cache ./cache
              prefetch-coord cancel --slot home --yes

            Images in the cache stay, and other batches continue. A batch of which Redis
            has lost the record is removed.
            """)

    @Argument(help: "Batch, or the beginning of its name. (default: the newest)", completion: .batch)
    var batch: String?

    @Option(help: .name("Cancel the running batch that has this slot."))
    var slot: String?

    @OptionGroup var confirmation: Confirmation
    @OptionGroup(title: "Redis") var location: SettingOptions<RedisLocation>

    func validate() throws {
        if batch != nil && slot != nil { throw ValidationError("give a batch or --slot, not both") }
    }

    func run() async throws {
        try await Session.with(location.record) { session in
            let id = try await meant(session.queue)
            guard let before = try await session.queue.batches.status(of: id) else {
                return try await remove(id, session.queue)
            }
            guard before.state == .running else {
                Console.print("\(TerminalText.escaped(id)) is \(before.state.rawValue) already")
                return
            }
            let open = before.total - before.counts.finished
            try confirmation.ask(
                "end \(TerminalText.escaped(id)) with \(Wording.count(open)) of \(Wording.count(before.total)) URLs open",
                "cancel")
            _ = try await session.queue.batches.cancel(batch: id)
            guard let after = try await session.queue.batches.status(of: id) else { return }
            for line in BatchText.summary(after) { Console.print(line) }
        }
    }

    /// Redis has lost the record of the batch, so only its remaining keys can be removed.
    private func remove(_ id: String, _ queue: PrefetchQueue) async throws {
        let name = TerminalText.escaped(id)
        try confirmation.ask("remove what is left of \(name), of which Redis has lost the record", "cancel")
        _ = try await queue.batches.remove(batch: id, force: true)
        Console.print("removed \(name), of which Redis had lost the record")
    }

    private func meant(_ queue: PrefetchQueue) async throws -> String {
        guard let slot else {
            let id = try await queue.resolveBroken(batch)
            if batch == nil { try await MeantBatch.tell(id, "cancel", location.words, queue) }
            return id
        }
        guard let id = try await queue.batches.batch(inSlot: slot) else {
            throw PrefetchError(
                .notFound, "no running batch has the slot '\(slot)'", hint: "see them all: prefetch-coord status")
        }
        return id
    }
}
