/// What the transfers of a downloader do at one moment.
struct TransferStages {
    /// Transfers that connect or wait for the header of the response, and those that receive its body.
    var answering = 0, receiving = 0
    /// Whether all slots are in use while other downloads wait for one.
    var isFull = false
    /// Whether the bandwidth limit, or the writing of their files, holds transfers back.
    var isLimited = false, isSpooling = false
    /// Bytes of all responses so far, headers included.
    var bytes = 0
}

/// Sums of samples taken a few times a second; the difference of two readings tells how the downloader spent the time between them.
package struct TransferWork: Sendable, Equatable {
    /// Seconds between two samples: a quarter of the shortest time that anyone looks at.
    private static let interval = 0.2

    package private(set) var samples = 0
    /// Samples in which all slots were in use, the bandwidth limit held transfers, and their files did.
    package private(set) var full = 0, limited = 0, spooling = 0
    /// Transfers seen in all samples, by what they did.
    package private(set) var answering = 0, receiving = 0
    package private(set) var bytes = 0
    private var due = 0.0

    package init() {}

    func isDue(_ now: Double) -> Bool { now >= due }

    mutating func add(_ sample: TransferStages, now: Double) {
        due = now + Self.interval
        samples += 1
        full += sample.isFull ? 1 : 0
        limited += sample.isLimited ? 1 : 0
        spooling += sample.isSpooling ? 1 : 0
        answering += sample.answering
        receiving += sample.receiving
        bytes = sample.bytes
    }
}
