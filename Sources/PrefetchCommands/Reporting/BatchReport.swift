internal import Prefetch
internal import Redis
internal import WebImage

/// All that is in a report of a batch.
struct BatchReport: Sendable {
    /// A way in which URLs ended without an image.
    struct Cause: Sendable, Equatable {
        /// `httpError 404`: the outcome, and the status where there was one.
        var name: String
        var outcome: PrefetchOutcome
        var count: Int
        /// One of them, where details are kept.
        var sample: FailureDetail?
    }

    /// The most skipped URLs that are listed.
    static let mostFailures = 100

    /// The batch at one moment.
    var look: BatchLook
    /// The newest results over its retries, where there are some.
    var merged: String?
    /// Skipped URLs, as they stand in the list; some of them.
    var failures: [FailureDetail] = []
    /// Nil where no cache was at hand.
    var images: ImageFigures?
    /// Nil where no log was given.
    var transfers: TransferFigures?

    /// Why URLs ended without an image, the most frequent first; the counts add up to the skipped.
    var causes: [Cause] {
        let counts = look.status.counts
        var causes: [Cause] = []
        func sample(_ outcome: PrefetchOutcome, _ status: Int) -> FailureDetail? {
            failures.first { $0.outcome == outcome && $0.httpStatus == status }
        }
        for outcome in PrefetchOutcome.allCases where outcome.isSkipped && counts[outcome] > 0 {
            var rest = counts[outcome]
            if outcome == .httpError {
                for (status, count) in look.httpStatuses.sorted(by: { $0.key < $1.key }) where count > 0 && rest > 0 {
                    // They are told once a second, each as its own: never more than there are.
                    let part = min(rest, count)
                    rest -= part
                    causes.append(
                        Cause(
                            name: "\(outcome.name) \(status)", outcome: outcome, count: part,
                            sample: sample(outcome, status)))
                }
            }
            guard rest > 0 else { continue }
            // What has no status among those that were told.
            let other = failures.first {
                $0.outcome == outcome && ($0.httpStatus.flatMap { look.httpStatuses[$0] } ?? 0) == 0
            }
            causes.append(Cause(name: outcome.name, outcome: outcome, count: rest, sample: other))
        }
        return causes.sorted { ($0.count, $1.name) > ($1.count, $0.name) }
    }

    /// Milliseconds since 1970 from its beginning to its end, or to now.
    var window: ClosedRange<Int> {
        let status = look.status
        return status.created...max(status.created, status.ended > 0 ? status.ended : status.at)
    }

    /// Reads all of it.
    ///
    /// * `cache`: the folder with the images; nil leaves out what only images tell.
    /// * `logs`: what workers wrote of their transfers.
    /// - Throws: `notFound` where there is no such batch; what reading its list, its images or a log throws.
    static func read(
        _ id: String, queue: PrefetchQueue, cache: String?, listPath: String?, logs: [String]
    ) async throws(PrefetchError) -> BatchReport {
        let look: BatchLook?
        do throws(RedisError) { look = try await queue.views.look(at: id) } catch { throw PrefetchError(error) }
        guard let look else {
            throw PrefetchError(.notFound, "there is no batch '\(id)'", hint: "see them all: prefetch-coord status")
        }
        var report = BatchReport(look: look)
        let chain = try await BatchChain.read(id, queue: queue)
        report.merged = BatchText.merged(chain, seenFrom: id)?.trimmedLeft
        report.failures = try await failures(look.status, queue, listPath: listPath)
        if let cache {
            let disk = try CacheOpening.forReading(cache)
            report.images = try await BatchExport.figures(
                of: look.status, queue: queue, cache: disk, listPath: listPath)
        }
        if !logs.isEmpty {
            var transfers = TransferFigures()
            let window = report.window
            // Two machines' clocks may be a little apart.
            let seconds = (Double(window.lowerBound) / 1000 - 2)...(Double(window.upperBound) / 1000 + 2)
            for log in logs { try transfers.read(log, window: seconds) }
            report.transfers = transfers
        }
        return report
    }

    /// Some skipped URLs: all kinds that there are, and of each the first.
    private static func failures(
        _ status: BatchStatus, _ queue: PrefetchQueue, listPath: String?
    ) async throws(PrefetchError) -> [FailureDetail] {
        let some: [FailureDetail]
        do throws(RedisError) {
            some = try await queue.results.someFailures(of: status.id, most: 20 * mostFailures).sorted {
                $0.key < $1.key
            }
            .map(\.value)
        } catch {
            throw PrefetchError(error)
        }
        guard some.count < min(20 * mostFailures, status.counts.skipped) else { return some }
        // Fewer details are kept than there is room for: the list has the URLs of the others, where it is.
        var all: [FailureDetail] = []
        do throws(PrefetchError) {
            try await FailureReader(queue: queue, status: status, listPath: listPath).forEach { failure in
                all.append(failure)
                return all.count < 20 * mostFailures
            }
        } catch {
            guard listPath == nil, error.kind == .notFound || error.kind == .unreadableList else { throw error }
            return some
        }
        return all
    }
}

extension String {
    fileprivate var trimmedLeft: String { String(drop { $0 == " " }) }
}
