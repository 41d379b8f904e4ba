internal import Glibc
internal import Redis
internal import WebImage

/// Where the lines of a batch are that its results refer to.
enum ListPlace {
    /// The file: where the list was, if its lines are still those of the batch, or the copy that was kept of it.
    /// - Throws: `unreadableList`, or `notFound`, if neither can be read.
    static func path(of status: BatchStatus, queue: PrefetchQueue) async throws(PrefetchError) -> String {
        do throws(PrefetchError) { return try path(of: status) } catch {
            // Sealed since: its lines are in the copy now.
            guard status.isOpen else { throw error }
            let now = try await bridgingErrors { () async throws(RedisError) in
                try await queue.batches.status(of: status.id)
            }
            guard let now, !now.isOpen else { throw error }
            return try path(of: now)
        }
    }

    private static func path(of status: BatchStatus) throws(PrefetchError) -> String {
        if isUnchanged(status) { return status.listPath }
        if let copy = ListCopy(of: status.listHash, in: status.listCopies)?.unpacked(status.listBytes) { return copy }
        let name = PathText.shown(status.listPath)
        let isThere = PathText.withBytes(status.listPath) { access($0, F_OK) } == 0
        throw PrefetchError(
            isThere ? .unreadableList : .notFound,
            isThere
                ? "\(name) is not the list of \(status.id) any more, and there is no copy of it"
                : "the list of \(status.id) is not there any more, and there is no copy of it: \(name)",
            hint: "what was downloaded is in the cache; run the list again as it is now")
    }

    /// Whether the file of the list begins with what was queued of it.
    private static func isUnchanged(_ status: BatchStatus) -> Bool {
        if !status.listMark.isEmpty, let mark = FileMark(path: status.listPath), mark.text == status.listMark {
            return true
        }
        guard FileMark(path: status.listPath) != nil else { return false }
        return ListDigest.hex(ofFile: status.listPath, upTo: status.listBytes) == status.listHash
    }
}
