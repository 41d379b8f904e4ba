internal import Threading

/// How downloads ended that others waited for: who asked for the same image in the same way meanwhile has the same error, without a request of
/// its own, as the callers of one operation of SDWebImageDownloader have (`URLCallbacks`).
final class SharedFailures: Sendable {
    /// What was asked for, and how.
    private struct Question: Hashable {
        let text: ByteText
        let profile: ObjectIdentifier?
        let cookies: ObjectIdentifier?

        init(_ key: CacheKey, _ request: LoadRequest) {
            let how = request.options.subtracting([.highPriority, .lowPriority])
            let parts =
                [
                    key.description, request.url, "\(how.rawValue) \(request.level) \(request.unverifiable)",
                    request.expectedDigest?.hex ?? "", request.settings ?? "",
                ] + request.mirrors + request.headers.map { "\($0.name):\($0.value)" }
            text = ByteText(parts.joined(separator: "\n"))
            profile = request.settings == nil ? request.profile.map { ObjectIdentifier($0) } : nil
            cookies = how.contains(.handleCookies) ? request.cookies.map { ObjectIdentifier($0) } : nil
        }

        /// For other processes; nil: it is this one's alone.
        var digest: String? { profile == nil && cookies == nil ? SHA256.hash(Array(text.text.utf8)).hex : nil }
    }

    private struct Failure {
        var error: WebImageError
        let at = ContinuousClock.now
    }

    /// After so long nobody waits any more; more than so many are forgotten.
    private static let (longest, most) = (Duration.seconds(300), 1_024)

    private let failures = Locked<[Question: Failure]>([:])

    /// A download failed: tells those that wait for the same image.
    nonisolated(nonsending) func tell(
        _ error: WebImageError, _ key: CacheKey, _ request: LoadRequest, _ lock: TransferLock
    ) async {
        if error.isOfItsDownload {
            if lock.waiting(for: key) > 0 { add(error, to: Question(key, request)) }
            if let sharing = request.sharing, lock.isAwaited(key), let question = Question(key, request).digest {
                await sharing.tell(error, question: question)
            }
        }
        request.didFail?(error)
    }

    /// Ends a load that waited for a download since `began`, if it asks for the same in the same way.
    /// - Throws: how that download ended.
    nonisolated(nonsending) func take(
        _ key: CacheKey, _ request: LoadRequest, _ transfer: Transfer, since began: ContinuousClock.Instant
    ) async throws(WebImageError) {
        if failures.withLock({ $0.isEmpty }), !transfer.waitedForOthers { return }
        let question = Question(key, request)
        var found = failures.withLock { $0[question] }.flatMap { $0.at >= began ? $0.error : nil }
        if found == nil, transfer.waitedForOthers, let sharing = request.sharing, let digest = question.digest {
            found = await sharing.error(question: digest)
            // The next of this process may get the lock at once, and so never learn that another process had it.
            if let found, transfer.isAwaitedHere { add(found, to: question) }
        }
        guard var error = found else { return }
        error.tries = 0
        request.didFail?(error)
        throw error
    }

    private func add(_ error: WebImageError, to question: Question) {
        failures.withLock { failures in
            if failures.count >= Self.most { failures = [:] }
            failures = failures.filter { .now - $0.value.at < Self.longest }
            failures[question] = Failure(error: error)
        }
    }
}

/// Tells other processes how downloads ended that they waited for, and asks them.
package protocol FailureSharing: Sendable {
    /// * `question`: a digest of what was asked for, and how.
    func tell(_ error: WebImageError, question: String) async
    func error(question: String) async -> WebImageError?
}

extension WebImageError {
    /// Whether a download of somebody else would have ended in the same way: no rule, no cancellation, and nothing of this machine.
    var isOfItsDownload: Bool {
        ![.cancelled, .localFault, .notCached, .refused, .imageRefused, .blackListed, .invalidConfiguration]
            .contains(code)
    }
}
