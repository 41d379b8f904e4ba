internal import Threading
internal import WebImage

/// The URLs whose image this worker could not store or read, although its disk takes others.
final class UnstoredURLs: Sendable {
    struct Name: Hashable, Sendable {
        let batch: BatchIdentity
        let index: Int
    }

    struct Failure: Sendable {
        /// How often it was tried here.
        var tries: Int
        var error: WebImageError
    }

    /// More are forgotten, and tried again.
    private static let most = 1_024

    /// How long this worker claims nothing after it has left a URL to the others, so that it does not claim the same job again.
    private static let rest = Duration.milliseconds(500)

    private let failures = Locked<[Name: Failure]>([:])
    private let restsUntil = Locked(ContinuousClock.now)

    /// Whether a URL was left to the others a moment ago.
    var rests: Bool { !isEmpty && restsUntil.withLock { $0 > .now } }

    /// A URL is left to the others.
    func leave() { restsUntil.withLock { $0 = .now + Self.rest } }

    var isEmpty: Bool { failures.withLock { $0.isEmpty } }

    subscript(name: Name) -> Failure? { failures.withLock { $0[name] } }

    /// Counts a try that failed.
    func fail(_ name: Name, _ error: WebImageError) -> Failure {
        failures.withLock { failures in
            let failure = Failure(tries: (failures[name]?.tries ?? 0) + 1, error: error)
            if failures.count >= Self.most { failures.removeAll() }
            failures[name] = failure
            return failure
        }
    }

    func forget(_ name: Name) { failures.withLock { $0[name] = nil } }
}
