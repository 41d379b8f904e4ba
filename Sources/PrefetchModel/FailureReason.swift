/// What tells apart failures that have one outcome and need different remedies. A batch stores it by its name beside the outcome of a
/// failure; the names never change.
public enum FailureReason: String, Sendable, CaseIterable {
    // MARK: httpError

    /// The server lets only browsers in: a challenge page, or the empty 202 of a bot wall.
    case browsersOnly
    /// The server asks for credentials.
    case credentials
    /// More redirects than allowed, or a loop.
    case redirects

    // MARK: tooLarge

    /// More bytes than `--max-size`.
    case bytes
    /// A compressed body that is too much longer unpacked.
    case expansion
    /// More pixels than `--max-pixels`.
    case pixels
    /// More memory to decode than `--max-decode-memory`.
    case decodeMemory
    /// More time, or more than the library takes, to decode.
    case decodeTime
    /// A limit of a codec that no option raises: sides, scans, frames.
    case codecLimit
    /// A side too long to be resized.
    case resizedSide

    // MARK: refused

    /// An address or a port that is closed unless `--allow-net` opens it.
    case closedNetwork
    /// An address that the operator has closed (`--deny-net`).
    case deniedNetwork
    /// The queue's own Redis, which nothing opens.
    case queueRedis
    /// robots.txt disallows it.
    case robots
    /// robots.txt could not be read.
    case unreadableRobots
    /// `X-Robots-Tag` excludes the image from collections.
    case robotsTag
    /// Neither http nor https.
    case scheme
    /// A redirect from https to http.
    case downgrade
    /// A Content-Type that is not accepted.
    case contentType
    /// A worker's own ``ImageURLFilter`` does not let it pass.
    case workerFilter

    // MARK: filtered

    /// An ``ImageURLFilter`` of the batch, or of the downloader, does not let it pass.
    case urlFilter
    /// A format that the ``ImageRules`` do not take.
    case imageType
    /// A size or proportions that the ``ImageRules`` do not take.
    case imageSize
    /// ``ImageRules`` about the size of an image of which none is known.
    case unknownSize

    /// The outcome of a failure with this reason.
    public var outcome: PrefetchOutcome {
        switch self {
        case .browsersOnly, .credentials, .redirects: .httpError
        case .bytes, .expansion, .pixels, .decodeMemory, .decodeTime, .codecLimit, .resizedSide: .tooLarge
        case .closedNetwork, .deniedNetwork, .queueRedis, .robots, .unreadableRobots, .robotsTag, .scheme, .downgrade,
            .contentType, .workerFilter:
            .refused
        case .urlFilter, .imageType, .imageSize, .unknownSize: .filtered
        }
    }
}
