internal import Glibc
internal import Redis
internal import WebImage

/// Where the lines of a batch are that its results refer to.
package enum ListPlace {
    /// What is left of a list.
    package enum Standing: Sendable, Equatable {
        /// The file has the lines that were queued.
        case asQueued
        /// The file does not, and a copy has them.
        case copied(path: String)
        /// The file has some of them.
        case parts([ListPiece], lost: [ClosedRange<Int>])
        /// The file has other lines now, and there is no copy.
        case changed
        /// There is neither.
        case missing
    }

    /// A file with lines of a batch.
    struct Found {
        let path: String
        var pieces = [ListPiece.whole]
        /// Lines of the list that it does not have.
        var lost: [ClosedRange<Int>] = []
    }

    /// What is left of the list of a batch on this machine.
    package static func standing(of status: BatchStatus) -> Standing {
        if isUnchanged(status) { return .asQueued }
        if let copy = ListCopy(of: status.listHash, in: status.listCopies)?.unpacked(status.listBytes) {
            return .copied(path: copy)
        }
        guard PathText.withBytes(status.listPath, { access($0, F_OK) }) == 0 else { return .missing }
        guard let sums = ListSums(of: status.listHash, in: status.listCopies),
            let found = try? sums.pieces(in: status.listPath), found.pieces.contains(where: { $0.offset != nil })
        else { return .changed }
        return .parts(found.pieces, lost: found.lost)
    }

    /// The file: where the list was, if it has lines of the batch, or the copy that was kept of it.
    /// - Throws: `unreadableList`, or `notFound`, if neither can be read.
    static func find(_ status: BatchStatus, queue: PrefetchQueue) async throws(PrefetchError) -> Found {
        do throws(PrefetchError) { return try find(status) } catch {
            // Sealed since: its lines are in the copy now.
            guard status.isOpen else { throw error }
            let now = try await bridgingErrors { () async throws(RedisError) in
                try await queue.batches.status(of: status.id)
            }
            guard let now, !now.isOpen else { throw error }
            return try find(now)
        }
    }

    private static func find(_ status: BatchStatus) throws(PrefetchError) -> Found {
        let name = PathText.shown(status.listPath)
        let hint =
            "put it back as it was; or run it as it is now: that is another batch, and what is in the cache is not downloaded again"
        switch standing(of: status) {
        case .asQueued: return Found(path: status.listPath)
        case .copied(let path): return Found(path: path)
        case .parts(let pieces, let lost): return Found(path: status.listPath, pieces: pieces, lost: lost)
        case .changed:
            throw PrefetchError(
                .unreadableList, "\(name) is not the list of \(status.id) any more, and there is no copy of it",
                hint: hint)
        case .missing:
            throw PrefetchError(
                .notFound, "the list of \(status.id) is not there any more, and there is no copy of it: \(name)",
                hint: hint)
        }
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
