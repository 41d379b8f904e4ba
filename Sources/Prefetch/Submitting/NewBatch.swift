internal import Redis

package struct NewBatch: Sendable {
    package var list: URLList
    /// Whether the list comes from a pipe: its total and hash are known when it is sealed.
    package var isOpen = false
    /// Time limit in milliseconds.
    package var limit: Int?
    /// How many URLs have to end before it is ended: a number, or a share such as `99.9%`.
    package var finishAt: String?
    /// How many URLs may be skipped before it is cancelled: a number, or a share of those that have ended.
    package var maxFailures: String?
    package var options = BatchOptions()
    package var order = PrefetchOrder.fifo
    package var priority = PrefetchPriority.normal
    /// Seconds it stays in Redis after its end; 0 = forever.
    package var keep = 7 * 86_400
    /// The most details of skipped URLs it keeps.
    package var keepDetails = 100_000
    /// Its slot: a running batch in it is cancelled.
    package var slot: String?
    /// Its id; nil: the list's name and hash, with `.2` … for later ones.
    package var name: String?

    /// ``slot``, or that of batches of this user and machine that cancel the one before.
    package var takenSlot: String? {
        guard slot == nil, options.compat == .sd3 else { return slot }
        return "sharedImagePrefetcher-\(ThisHost.user)@\(ThisHost.name)"
    }

    package init(list: URLList) {
        self.list = list
    }

    /// Creates the batch.
    /// - Throws: `configuration` if `name` exists; errors of Redis.
    package func open(in queue: PrefetchQueue) async throws(PrefetchError) -> QueueBatches.Opened {
        var fields = [
            ("total", String(list.total)), ("list", list.absolutePath), ("hash", list.hash),
            ("options", options.encoded), ("order", order.rawValue), ("priority", priority.rawValue),
            ("keep", String(keep)), ("details", String(keepDetails)), ("host", ThisHost.name),
        ]
        if !list.sources.isEmpty {
            fields.append(("sources", list.sources.joined(separator: "\0")))
        }
        if isOpen { fields.append(("open", "1")) }
        if let limit { fields.append(("limit", String(limit))) }
        if let finishAt { fields.append(("finish_at", finishAt)) }
        if let maxFailures { fields.append(("max_failures", maxFailures)) }
        // The file of a pipe has a name of its own already.
        let wanted = name ?? (isOpen ? list.stem : list.usualBatchID)
        let nonce = "\(UInt64.random(in: 0...UInt64.max))-\(UInt64.random(in: 0...UInt64.max))"
        let opened: QueueBatches.Opened?
        do throws(RedisError) {
            opened = try await queue.batches.open(
                id: wanted, nonce: nonce, exactly: name != nil, slot: takenSlot, fields: fields)
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
    package var usualBatchID: String { "\(stem)-\(hash.prefix(8))" }
}
