internal import Prefetch
internal import PrefetchModel

/// What helps against a cause of failures: a sentence with the options by their names.
enum FailureRemedy {
    /// Nil if nothing is known to help.
    /// * `detail`: the message of the failure, which tells apart what has the same outcome.
    static func text(_ outcome: PrefetchOutcome, httpStatus: Int?, detail: String) -> String? {
        switch outcome {
        case .httpError: status(httpStatus, detail)
        case .refused: refusal(detail)
        case .blacklisted: "retry, or --retry-failed, requests them before they lapse; blacklist rm takes them off"
        case .timeout: "retry; a longer --timeout or --max-time, or fewer transfers (--max-concurrent-downloads)"
        case .dns: "correct the names, or the resolver (doctor checks it), and retry"
        case .connect: "retry when the servers are up; a longer --connect-timeout if they are slow"
        case .tls: "name the authority of their certificates with --ca-file; --allow-invalid-ssl accepts any"
        case .truncated: "retry"
        case .badImage: "correct the URLs: the servers send something else, often a page"
        case .unsupported: "--unverifiable keep stores them unverified; doctor names missing libraries"
        case .tooLarge: size(detail)
        case .invalidURL: "correct the lines: a URL begins with http:// or https://"
        case .mismatch: "correct the SHA-256 in the list, or get the images elsewhere: other bytes are there now"
        case .notCached: "retry without --from-cache-only"
        case .poison: "report them with their images: their bytes ended workers"
        case .cancelled: "retry fetches what was left"
        default: nil
        }
    }

    /// By the words of the messages of limits, which name the option.
    private static func size(_ detail: String) -> String {
        let known = [
            ("--max-pixels", "retry with a larger --max-pixels, of the batch and of its workers"),
            ("--max-decode-memory", "retry on workers with a larger --max-decode-memory"),
            ("--validate structure", "retry with --validate structure, which decodes nothing, if you trust the sites"),
            ("--validate none", "retry with --validate none, which checks nothing, if you trust the sites"),
            ("cannot be resized", "retry without --resize"),
        ]
        return known.first { detail.contains($0.0) }?.1 ?? "retry with a larger --max-size"
    }

    private static func status(_ status: Int?, _ detail: String) -> String? {
        switch status {
        case 401: return "give credentials: --user NAME:PASSWORD, --bearer TOKEN or --netrc FILE"
        case 403 where detail.contains("cf-mitigated"), 202 where detail.contains("bot walls"):
            return "these sites let only browsers in: ask their owners, and say who you are with --contact"
        case 403 where detail.contains("("):
            return "give credentials that these servers accept: --user NAME:PASSWORD, --bearer TOKEN or --netrc FILE"
        case 403:
            return "say who you are with --contact or --user-agent, or add what they expect with --header 'Referer: …'"
        case 404, 410, 451: return "correct the list; they are requested again when they lapse (--blacklist-ttl)"
        case 407: return "give the proxy credentials: --proxy http://NAME:PASSWORD@HOST:PORT"
        case 429: return "retry with a lower --rate-per-host or --max-per-host"
        case let code? where code == 408 || code == 425 || code >= 500: return "retry later, or with more --tries"
        case let code? where code >= 400:
            return "open one of them in a browser: these servers do not serve it to programs"
        case let code? where code < 300: return "retry with another --accept-status"
        case .some: return nil
        case nil: return "retry with more --max-redirects, or correct the URLs"
        }
    }

    /// By the words of the messages that end as `refused`.
    private static func refusal(_ detail: String) -> String? {
        guard !detail.isEmpty else { return nil }
        let known = [
            ("X-Robots-Tag", "--ignore-robots-tag takes them, --own-host NAME those of a host of your own"),
            ("robots.txt of", "retry without --robots, if the sites are yours"),
            ("Content-Type", "retry with another --accept-type"),
            (" pixels; the m", "retry with other rules: --min-width 1"),
            (" of unknown size", "retry without rules about sizes: --min-width 0"),
            ("; the accepted types are ", "retry with other --types"),
            ("scheme ", "correct the URLs: only http and https are fetched"),
            ("redirected from https", "correct the URLs: these lead from https to http"),
        ]
        return known.first { detail.contains($0.0) }?.1
            ?? "open the networks, if they are yours: --allow-net ADDRESS, or ADDRESS:PORT"
    }
}
