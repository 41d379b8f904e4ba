/// Progress of a transfer, and the time of its last byte.
struct TransferProgress {
    /// Of the body; header bytes are counted apart.
    var bytes = 0
    var requestWasSent = false
    /// Whether the response header is complete. Until then only whole lines count, because curl delivers no partial ones.
    var hasHeader = false
    private(set) var tryStart: Double?
    private(set) var hopStart = 0.0
    private(set) var lastByte = 0.0
    private(set) var wasTooSlow = false
    /// Whether its body comes in small pieces, and slower than ``ImageDownloader/Configuration/lowSpeedLimit``, as of servers that want to keep
    /// connections. What comes slowly over a narrow way comes in whole segments.
    private(set) var isDripping = false
    private var largestPiece = 0
    private var checkedAt = 0.0
    private var checkedBytes = 0
    private var seenBytes = 0
    private var sawRequest = false
    private var windowStart = 0.0
    private var windowBytes = 0

    mutating func beginHop(now: Double) {
        tryStart = tryStart ?? now
        hopStart = now
        lastByte = now
        bytes = 0
        seenBytes = 0
        requestWasSent = false
        hasHeader = false
        sawRequest = false
        windowStart = now
        windowBytes = 0
        wasTooSlow = false
        (isDripping, largestPiece, checkedAt, checkedBytes) = (false, 0, now, 0)
    }

    mutating func didReceive(_ count: Int) {
        bytes += count
        largestPiece = max(largestPiece, count)
    }

    /// * `interval`: seconds over which it is looked at, or longer, until something has come.
    mutating func checkForDrips(now: Double, every interval: Double, lowSpeedLimit: Int) {
        let arrived = bytes - checkedBytes
        guard now - checkedAt >= interval, arrived > 0 else { return }
        isDripping =
            hasHeader && largestPiece < Self.smallPiece
            && Double(arrived) < Double(lowSpeedLimit) * (now - checkedAt)
        (largestPiece, checkedAt, checkedBytes) = (0, now, bytes)
    }

    /// Less than a segment of the least size that hosts take (RFC 9293: 536).
    private static let smallPiece = 512

    /// The transfer was held back here: neither silence nor slowness counts.
    mutating func wasThrottled(now: Double, headerBytes: Int) {
        lastByte = now
        windowStart = now
        windowBytes = bytes + headerBytes
    }

    /// Accounts for the bytes since the last check; returns the error if a limit is exceeded.
    mutating func check(
        now: Double, headerBytes: Int, hasWholeHeader: Bool, limits: ImageDownloader.Configuration
    ) -> WebImageError? {
        let bytes = bytes + headerBytes
        if bytes != seenBytes || requestWasSent != sawRequest {
            seenBytes = bytes
            sawRequest = requestWasSent
            lastByte = now
        }
        func timeout(_ message: String) -> WebImageError {
            WebImageError(.timedOut, message, isTransient: true)
        }
        if let limit = limits.maxTime, now - (tryStart ?? now) >= limit {
            return timeout("not done after \(secondsText(limit))")
        }
        guard requestWasSent else {
            // curl's own limit comes first; this one is for a transfer that waits for another one's connection.
            return now - hopStart >= limits.connectTimeout * 1.25 + 0.1
                ? timeout("no connection for \(secondsText(limits.connectTimeout))") : nil
        }
        if now - lastByte >= limits.downloadTimeout {
            return timeout("no \(hasWholeHeader ? "byte" : "header line") for \(secondsText(limits.downloadTimeout))")
        }
        if limits.lowSpeedLimit > 0, now - windowStart >= limits.lowSpeedTime {
            if Double(bytes - windowBytes) < Double(limits.lowSpeedLimit) * (now - windowStart) {
                wasTooSlow = true
                return timeout("less than \(limits.lowSpeedLimit) bytes/s for \(secondsText(limits.lowSpeedTime))")
            }
            windowStart = now
            windowBytes = bytes
        }
        return nil
    }
}

/// `15 s`, `0.2 s`.
func secondsText(_ seconds: Double) -> String {
    seconds == seconds.rounded() ? "\(Int(seconds)) s" : "\(seconds) s"
}
