internal import Prefetch
internal import PrefetchModel

/// What helps against failures of a kind: a sentence with the options by their names. Nothing advises to open what the user has closed.
enum FailureRemedy {
    /// Nil if nothing is known to help.
    static func text(_ outcome: PrefetchOutcome, _ reason: FailureReason?, httpStatus: Int?) -> String? {
        if let reason { return text(reason) }
        return outcome == .httpError ? httpStatus.flatMap(text) : text(outcome)
    }

    private static func text(_ reason: FailureReason) -> String? {
        switch reason {
        case .browsersOnly: "these sites let only browsers in: ask their owners, and say who you are with --contact"
        case .credentials:
            "give credentials that these servers accept: --user NAME:PASSWORD, --bearer TOKEN or --netrc FILE"
        case .redirects: "correct the URLs: these redirect more than ten times"
        case .bytes: "retry with a larger --max-size"
        case .pixels: "retry with a larger --max-pixels, of the batch and of its workers"
        case .decodeMemory: "retry on workers with a larger --max-decode-memory"
        case .decodeTime: "retry with --validate structure, which decodes nothing, if you trust the sites"
        case .codecLimit: "retry with --validate none, which checks nothing, if you trust the sites"
        case .resizedSide: "retry without --resize"
        case .closedNetwork: "open the networks, if they are yours: --allow-net ADDRESS, or ADDRESS:PORT"
        case .robots: "retry without --robots, if the sites are yours"
        case .unreadableRobots: "retry when the sites' robots.txt can be read, or without --robots, if they are yours"
        case .robotsTag: "--ignore-robots-tag takes them; --own-host NAME skips all robots rules of a host you own"
        case .scheme: "correct the URLs: only http and https are fetched"
        case .downgrade: "correct the URLs: these lead from https to http"
        case .imageType: "retry with other --types"
        case .imageSize: "retry with other rules: --min-size 1"
        case .unknownSize: "retry without rules about sizes: --min-size 0"
        // Closed by the user himself, or what nothing should open.
        case .contentType, .deniedNetwork, .urlFilter, .workerFilter, .queueRedis, .expansion: nil
        }
    }

    /// Of failures whose reason is not known, or makes no difference.
    private static func text(_ outcome: PrefetchOutcome) -> String? {
        switch outcome {
        case .blacklisted: "retry, or --retry-failed, requests them before they lapse; blacklist rm takes them off"
        case .timeout: "retry; a longer --timeout or --max-time, or fewer transfers (--max-concurrent-downloads)"
        case .dns: "correct the names, or the resolver (doctor checks it), and retry"
        case .connect: "retry when the servers are up; a longer --connect-timeout if they are slow"
        case .tls: "name the authority of their certificates with --ca-file; --allow-invalid-ssl accepts any"
        case .truncated: "retry"
        case .badImage: "correct the URLs: the servers send something else, often a page"
        case .unsupported: "--unverifiable keep stores them unverified; doctor names missing libraries"
        case .invalidURL: "correct the lines: a URL begins with http:// or https://"
        case .mismatch: "correct the SHA-256 in the list, or get the images elsewhere: other bytes are there now"
        case .notCached: "run the list again without fromCacheOnly"
        case .poison: "report them with their images: their bytes ended decoders or workers"
        case .cancelled: "retry fetches what was left"
        case .notStored: "repair the cache where failures names a file (cache verify, fsck(8) of its disk), and retry"
        case .downloaded, .hit, .notModified, .httpError, .tooLarge, .refused, .filtered, .unknown: nil
        }
    }

    private static func text(_ status: Int) -> String? {
        switch status {
        case 401: "give credentials: --user NAME:PASSWORD, --bearer TOKEN or --netrc FILE"
        case 403: "say who you are with --contact, or add what they expect with --header 'Referer: …'"
        case 404, 410, 451:
            "correct the list; they are requested again once their blacklist entries lapse (--blacklist-ttl)"
        case 407: "give the proxy credentials: --proxy http://NAME:PASSWORD@HOST:PORT"
        case 429: "retry with a lower --rate-per-host or --max-per-host"
        case 408, 425, 500...: "retry later, or with more --tries"
        case 400...: "open one of them in a browser: these servers do not serve it to programs"
        default: nil
        }
    }
}
