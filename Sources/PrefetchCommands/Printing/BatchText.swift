package import Prefetch
internal import WebImage

/// A batch in words: what `run`, `submit --wait` and `status` print for people.
package enum BatchText {
    /// `downloaded 2,900   hit 73   notModified 0`
    static func images(_ counts: PrefetchCounts) -> String {
        "  downloaded \(Wording.count(counts[.downloaded]))   hit \(Wording.count(counts[.hit]))   notModified "
            + Wording.count(counts[.notModified])
    }

    /// `finished 3,333 of 3,333: 2,973 images, 360 skipped (httpError 300, timeout 60)`: every URL that ended, with and without an image.
    static func tally(_ status: BatchStatus) -> String {
        let counts = status.counts
        let images = counts.finished - counts.skipped
        return
            "finished \(Wording.count(counts.finished)) of \(status.totalText): "
            + "\(Wording.count(images, "image")), "
            + "\(Wording.count(counts.skipped)) skipped" + (counts.skipped > 0 ? " (\(causes(counts)))" : "")
    }

    /// `httpError 404`, `timeout`: the cause under which a skipped URL is counted.
    static func cause(of detail: FailureDetail) -> String {
        guard detail.outcome == .httpError, let status = detail.httpStatus else { return detail.outcome.name }
        return "\(detail.outcome.name) \(status)"
    }

    /// `httpError 50, badImage 50`
    static func causes(_ counts: PrefetchCounts) -> String {
        PrefetchOutcome.allCases.filter { $0.isSkipped && counts[$0] > 0 }
            .sorted { (counts[$0], $1.rawValue) > (counts[$1], $0.rawValue) }
            .map { "\($0.name) \(Wording.count(counts[$0]))" }.joined(separator: ", ")
    }

    /// The summary of an ended batch.
    package static func summary(_ status: BatchStatus, pace: String? = nil) -> [String] {
        let seconds = max(status.elapsed, 0.001)
        let finished = status.counts.finished
        let rate = pace ?? Wording.count(Int(ProgressRate.mean(status).rounded())) + " URLs/s"
        var lines = [
            "\(TerminalText.escaped(status.id)) \(ended(status)): \(tally(status))",
            "\(images(status.counts))   in \(Wording.seconds(seconds))"
                + (finished > 0 ? ", \(rate), \(Wording.bytes(status.counts.bytes))" : ""),
        ]
        if let hint = unsupported(status.fetches) { lines.append("  " + hint) }
        if let refused = refused(status.fetches) { lines.append("  " + refused) }
        return lines
    }

    /// Which formats were not kept because they cannot be verified, most of them first; nil where there were none.
    private static func unsupported(_ fetches: FetchTally) -> String? {
        let found = fetches.unsupported.filter { $0.value > 0 }
            .sorted { ($0.value, $1.key.rawValue) > ($1.value, $0.key.rawValue) }
        guard !found.isEmpty else { return nil }
        let parts = found.enumerated().map { index, item in
            let noun = index > 0 ? "" : item.value == 1 ? " image" : " images"
            // Most JPEGs can be verified; these are of a kind that the library does not decode.
            let name = item.key == .jpeg ? "arithmetic-coded or 12-bit JPEG" : item.key.rawValue.uppercased()
            return "\(Wording.count(item.value))\(noun) \(item.value == 1 ? "is" : "are") \(name)"
        }
        return parts.joined(separator: ", ") + ", which this build cannot verify: --unverifiable keep stores them"
    }

    /// How many transfers the rules of the batch refused, and what that saved; nil without any.
    private static func refused(_ fetches: FetchTally) -> String? {
        guard fetches.refusedImages > 0 else { return nil }
        let images = Wording.count(fetches.refusedImages, "image")
        return "rules about size and type refused \(images): \(Wording.bytes(fetches.savedBytes)) not transferred"
    }

    /// One line about a batch on its way.
    static func line(_ status: BatchStatus, _ load: WorkerLoad, isColoured: Bool = false) -> String {
        var state = status.isOpen && status.estimate == 0 ? "open" : ended(status)
        if status.isWaitingForList { state = "waiting for its list" }
        if status.isWaitingForMemory { state = "waiting for memory" }
        if status.isEffectivelyPaused { state = "paused" }
        if isColoured {
            let ink: Ink =
                status.isWaitingForList || status.isWaitingForMemory || status.isEffectivelyPaused
                ? .warning : status.state == .cancelled ? .bad : .good
            state = ink.painted(state, isColoured: true)
        }
        let share = status.shareText.map { "\($0)  " } ?? ""
        return
            "\(TerminalText.escaped(status.id))  \(state)  \(share)"
            + tally(status) + (pace(status, load).map { "  \($0)" } ?? "")
    }

    /// How many URLs end a second, and how long the rest takes at that; nil where nothing goes on.
    private static func pace(_ status: BatchStatus, _ load: WorkerLoad) -> String? {
        var rate = ProgressRate()
        rate.add(status)
        guard status.state == .running, rate.urls > 0, load.workers > 0, !load.isPaused, !load.isIdle else {
            return nil
        }
        let number = rate.urls >= 10 ? Wording.count(Int(rate.urls.rounded())) : Wording.decimal(rate.urls, digits: 1)
        return "\(number) URLs/s" + (rate.eta(status, load).map { "  ETA \(Wording.seconds($0.rounded(.up)))" } ?? "")
    }

    /// The state, and who ended a batch that did not come to its end.
    static func ended(_ status: BatchStatus) -> String {
        switch status.endedBy {
        case nil: status.state.rawValue
        case .hand: "cancelled by hand"
        case .slot: "cancelled by its slot's next batch"
        case .deadline: "cancelled by its deadline"
        case .finishAt: "cancelled by --finish-at \(status.finishAt ?? "")"
        case .maxFailures: "cancelled by --max-failures \(status.maxFailures ?? "")"
        }
    }

    /// That a limit of the batch ended it before its whole list was queued; nil if something else did.
    static func endedWhileFed(_ status: BatchStatus) -> String? {
        switch status.endedBy {
        case .deadline: "\(TerminalText.escaped(status.id)) reached its deadline while it was fed"
        case .maxFailures:
            "\(TerminalText.escaped(status.id)) was cancelled while it was fed: more than \(status.maxFailures ?? "0") "
                + "of its URLs failed"
        case nil, .hand, .slot, .finishAt: nil
        }
    }

    /// The deadline of a running batch, and the numbers of URLs that end it; nil without any.
    static func limits(_ status: BatchStatus) -> String? {
        guard status.state == .running else { return nil }
        var parts: [String] = []
        if status.deadline > 0 {
            parts.append("deadline in \(Wording.seconds(Double(max(0, status.deadline - status.at)) / 1000))")
        }
        if let maxFailures = status.maxFailures {
            parts.append("cancelled if more than \(maxFailures) of its URLs fail")
        }
        if let finishAt = status.finishAt { parts.append("ends when \(finishAt) of its URLs have ended") }
        return parts.isEmpty ? nil : "  " + parts.joined(separator: ", ")
    }

    /// `3 shards written (1.2 GB), 2 wait for their last lines`; nil of a batch whose run writes none.
    static func shards(_ status: BatchStatus) -> String? {
        guard let shards = status.shards else { return nil }
        let open = Wording.count(shards.open)
        return "\(Wording.count(shards.written, "shard")) written (\(Wording.bytes(shards.bytes)))"
            + (shards.open > 0 ? ", \(open) \(shards.open == 1 ? "waits for its" : "wait for their") last lines" : "")
    }

    /// The pause that keeps the batch from starting URLs; nil without one.
    static func pause(_ status: BatchStatus) -> String? {
        guard status.isEffectivelyPaused else { return nil }
        if status.isPaused && status.isQueuePaused { return "paused, and so is the whole queue" }
        return status.isPaused ? "paused" : "the whole queue is paused"
    }

    /// That an unfinished batch continues.
    static func continuing(_ status: BatchStatus) -> String {
        "continuing \(TerminalText.escaped(status.id))\(status.shareText.map { " at \($0)" } ?? ""): "
            + "\(Wording.count(status.counts.finished)) of \(status.totalText) finished"
    }

    /// That an unfinished batch of the same cache waits while another one runs.
    /// * `others`: how many more there are.
    /// * `location`: what a command needs to find them.
    static func waiting(_ status: BatchStatus, others: Int, _ location: String) -> String {
        let id = TerminalText.escaped(status.id)
        let more = others > 0 ? ", like \(Wording.count(others, "more batch", "more batches"))" : ""
        let end = "\(Shell.program) cancel \(id) \(location)"
        let advice =
            switch ListPlace.standing(of: status) {
            case .asQueued: "run its list again to continue it, or end it with \(end)"
            case .copied(let path):
                "its list is not what it was; \(Shell.program) run \(Shell.quoted(path)) \(location) continues it with the lines "
                    + "that it had, or end it with \(end)"
            case .parts, .changed, .missing:
                "its list is not what it was, and there is no copy of the lines that it had, so that nothing continues it; end it with "
                    + "\(end): what it has fetched is in the cache"
            }
        return "note: \(id) of this cache is unfinished (\(Wording.count(status.counts.finished)) of "
            + "\(status.totalText) URLs) and waits\(more): \(advice)"
    }

    /// Which lines of a list were changed since it was queued, where there is no copy of it.
    static func lost(_ lines: [ClosedRange<Int>], of status: BatchStatus) -> String {
        let named = lines.prefix(5).map { range in
            "\(Wording.count(range.lowerBound)) to \(Wording.count(range.upperBound))"
        }
        let more = lines.count > named.count ? " and \(Wording.count(lines.count - named.count)) more parts" : ""
        return "note: \(TerminalText.escaped(status.listName)) was changed since it was queued: the URLs of its lines "
            + "\(named.joined(separator: ", "))\(more) are not known any more; all others are"
    }

    /// That there is nothing to retry.
    static func nothingSkipped(_ status: BatchStatus) -> String {
        "nothing to retry: \(TerminalText.escaped(status.id)) skipped none of its \(Wording.count(status.total)) URLs"
    }

    /// The newest results of the lines of a batch that is a retry or was retried; nil for any other.
    static func merged(_ chain: BatchChain, seenFrom id: String) -> String? {
        guard chain.batches.count > 1 else { return nil }
        let (counts, root, newest) = (chain.counts, chain.root, chain.newest)
        let images = counts.finished - counts.skipped
        var line =
            id == newest.id
            ? "  retries \(TerminalText.escaped(newest.retryOf ?? root.id))"
            : "  retried by \(TerminalText.escaped(newest.id))"
        line += "; newest results of the \(Wording.count(root.total)) lines of \(TerminalText.escaped(root.id)): "
        line += "\(Wording.count(images)) with an image, \(Wording.count(counts.skipped)) skipped"
        if counts.skipped > 0 { line += " (\(causes(counts)))" }
        if chain.open > 0 { line += ", \(Wording.count(chain.open)) open" }
        return line
    }
}
