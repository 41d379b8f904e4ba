internal import Redis
internal import WebImage

package struct NewBatch: Sendable {
    package var list: URLList
    package var settings = BatchSettings()
    /// The most details of skipped URLs it keeps.
    package var keepDetails = 100_000

    /// Its slot, or that of batches of this user and machine that cancel the one before.
    package var takenSlot: String? {
        guard settings.turn.slot == nil, settings.options.compat == .sd3 else { return settings.turn.slot }
        return "sharedImagePrefetcher-\(ThisHost.user)@\(ThisHost.name)"
    }

    package init(list: URLList) {
        self.list = list
    }

    /// Creates the batch.
    /// - Throws: `configuration` if its name exists, or a setting is out of range; errors of Redis.
    package func open(in queue: PrefetchQueue) async throws(PrefetchError) -> QueueBatches.Opened {
        // What the library's caller has set; the options of commands are checked as they are read.
        do throws(WebImageError) { try settings.check() } catch {
            throw PrefetchError(.configuration, error.message)
        }
        let name = settings.turn.name
        var fields =
            [
                ("total", String(list.total)), ("list", list.absolutePath), ("hash", list.hash),
                ("length", String(list.bytes)), ("details", String(keepDetails)), ("host", ThisHost.name),
            ] + settings.fields
        if !list.head.isEmpty { fields.append(("head", list.head)) }
        if let mark = list.mark { fields.append(("mark", mark.text)) }
        if !list.sources.isEmpty {
            fields.append(("sources", list.sources.joined(separator: "\0")))
        }
        if let copies = list.copies { fields.append(("copies", copies)) }
        if !list.isWhole { fields.append(("open", "1")) }
        let wanted = name ?? list.usualBatchID
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
    /// Of a pipe that goes on without a digest, which would be one of what happened to come first.
    package var usualBatchID: String {
        isWhole || mark != nil || !head.isEmpty && !sources.contains { $0 == "-" || $0 == "pipe" }
            ? "\(stem)-\(hash.prefix(8))" : stem
    }
}
