internal import Redis

/// A list and what is asked for it, before it is a batch.
package struct NewBatch: Sendable {
    /// The list; an open batch may have none yet.
    package var list: URLList?
    /// Whether more lists may be added, until it is sealed by hand.
    package var isOpen = false
    /// Milliseconds after which it is ended, whatever is open then.
    package var limit: Int?
    /// How many of its URLs have to end until it is ended: a number, or a share as `99.9%`.
    package var finishAt: String?
    /// What it asks of workers.
    package var options = BatchOptions()
    /// Which jobs start first.
    package var order = PrefetchOrder.fifo
    /// Its priority among the batches of the queue.
    package var priority = PrefetchPriority.normal
    /// Seconds it stays in Redis after its end; 0 = for ever.
    package var keep = 7 * 86_400
    /// The most entries of skipped URLs it keeps.
    package var keepDetails = 100_000
    /// The slot it takes: a running batch that has it is cancelled.
    package var slot: String?
    /// Its name; nil: the list's name and hash, and `.2` for a later one.
    package var name: String?

    package init(list: URLList?) {
        self.list = list
    }

    /// Makes the batch.
    /// - Throws: `configuration` where `name` names a batch that exists; what Redis says.
    package func open(in queue: PrefetchQueue) async throws(PrefetchError) -> QueueBatches.Opened {
        var fields = [
            ("total", String(list?.total ?? 0)), ("list", list?.absolutePath ?? ""), ("hash", list?.hash ?? ""),
            ("options", options.encoded), ("order", order.rawValue), ("priority", priority.rawValue),
            ("keep", String(keep)), ("details", String(keepDetails)), ("host", ThisHost.name),
        ]
        if isOpen { fields += [("open", "1"), ("lines", String(list?.lines ?? 0))] }
        if let limit { fields.append(("limit", String(limit))) }
        if let finishAt { fields.append(("finish_at", finishAt)) }
        let wanted =
            name ?? list.map(\.usualBatchID)
            ?? "open-\(String(UInt32.random(in: 0x1000_0000...UInt32.max), radix: 16))"
        let nonce = "\(UInt64.random(in: 0...UInt64.max))-\(UInt64.random(in: 0...UInt64.max))"
        let opened: QueueBatches.Opened?
        do throws(RedisError) {
            opened = try await queue.batches.open(
                id: wanted, nonce: nonce, exactly: name != nil, slot: slot, fields: fields)
        } catch {
            throw PrefetchError(error)
        }
        guard let opened else {
            throw PrefetchError(
                .configuration, "there is a batch '\(wanted)' already",
                hint: "choose another --name, or see prefetch-coord status \(wanted)")
        }
        return opened
    }
}

extension URLList {
    /// The name of its first batch, where nobody names it.
    package var usualBatchID: String { "\(stem)-\(hash.prefix(8))" }
}
