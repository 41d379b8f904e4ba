internal import Redis

/// What a worker says of itself with its registration and with each heartbeat: the fields of `w:<worker>`. They are written and read here and
/// nowhere else, but for those that are orders to it (`paused`, `wanted`), which scripts write.
package struct WorkerReport: Sendable, Equatable {
    /// How it is. Of several that are true the first one counts, in this order.
    package enum State: String, Sendable, CaseIterable {
        /// Its lease has run out: alive again with its next heartbeat, or reaped.
        case overdue
        /// Its disk does not answer; its jobs went back to the queue.
        case held
        /// A local fault keeps it from working, or waits for it to pass.
        case trouble
        /// Somebody told it to claim nothing.
        case paused
        case running
    }

    /// Where it runs, its process and its version.
    package var host = "", pid = 0, version = ""
    /// Milliseconds since 1970: when it registered, and its last heartbeat.
    package var since = 0, beat = 0
    /// Milliseconds that its lease has from a heartbeat on; nil where it never said.
    package var lease: Int?
    /// Transfers under way, those from which no byte comes among them.
    package var inFlight = 0
    /// Those from which no byte comes: they hold no slot.
    package var stalled = 0
    /// URLs whose image is being checked and stored, or waits for that.
    package var checking = 0
    /// Transfers that wait for their host's turn, and for their next try.
    package var waitingForHost = 0, retrying = 0
    /// Outcomes that Redis has not taken yet: few, unless it refuses reports or is slow.
    package var unreported = 0
    /// What it was first to settle since it registered; REPORT counts them, not the worker.
    package var finished = 0, skipped = 0, bytes = 0
    /// Transfers that it may have under way; nil where it did not say.
    package var maxConcurrentDownloads: Int?
    /// What is broken where it runs; empty where nothing is.
    package var trouble = ""
    /// What holds it, and since when; nil where nothing does.
    package var held: WorkerHold?
    /// What it has to say of single batches or keys within half a minute; empty where nothing.
    package var complaint = ""
    /// Its oldest open URLs, a line each (``OpenURLNote``).
    package var oldest = ""
    /// The id of its cache (``CacheDirectory/id``); empty where it did not say.
    package var cache = ""
    /// Images of its cache, their bytes, and what they may take; nil where nobody has counted, or nothing limits them.
    package var cacheImages: Int?, cacheBytes: Int?, cacheLimit: Int?
    /// Bytes of memory, and milliseconds of processor since its start.
    package var residentBytes: Int?, cpu: Int?
    /// Whether it was told to claim nothing.
    package var isPaused = false
    /// Transfers that it was told to have; nil: what it was started with, or what all were told.
    package var wantedConcurrency: Int?

    /// Of a worker that has said nothing.
    package init() {}

    /// Transfers that hold a slot.
    package var transferring: Int { max(0, inFlight - stalled) }

    /// * `leaseLeft`: milliseconds until others may take its jobs.
    package func state(leaseLeft: Int) -> State {
        if leaseLeft <= 0 { return .overdue }
        if held != nil { return .held }
        if !trouble.isEmpty { return .trouble }
        return isPaused ? .paused : .running
    }

    /// Milliseconds since its last heartbeat; nil where it never said how long its lease is.
    package func silence(leaseLeft: Int) -> Int? { lease.map { max(0, $0 - leaseLeft) } }

    /// Reads the fields; numbers that cannot be are none.
    package init(fields: [String: String]) {
        func known(_ name: String) -> Int? { fields[name].flatMap { Int(plausible: $0) }.map { max(0, $0) } }
        func number(_ name: String) -> Int { known(name) ?? 0 }
        func text(_ name: String) -> String { fields[name] ?? "" }
        (host, pid, version) = (text("host"), number("pid"), text("version"))
        (since, beat, lease) = (number("since"), number("beat"), known("lease"))
        (inFlight, stalled, checking) = (number("in_flight"), number("stalled"), number("checking"))
        (waitingForHost, retrying) = (number("waiting_for_host"), number("retrying"))
        unreported = number("unreported")
        (finished, skipped, bytes) = (number("finished"), number("skipped"), number("bytes"))
        maxConcurrentDownloads = known("max_concurrent_downloads")
        (trouble, complaint, oldest) = (text("trouble"), text("complaint"), text("oldest"))
        held = WorkerHold(fields)
        cache = text("cache")
        (cacheImages, cacheBytes, cacheLimit) = (known("cache_images"), known("cache_bytes"), known("cache_limit"))
        (residentBytes, cpu) = (known("rss"), known("cpu"))
        (isPaused, wantedConcurrency) = (text("paused") == "1", known("wanted"))
    }

    /// What a heartbeat says.
    package var fields: [(String, String)] {
        var fields = [
            ("in_flight", String(inFlight)), ("stalled", String(stalled)), ("checking", String(checking)),
            ("waiting_for_host", String(waitingForHost)), ("retrying", String(retrying)),
            ("unreported", String(unreported)),
            ("trouble", trouble), ("complaint", complaint), ("oldest", oldest), ("cache", cache),
        ]
        let known = [
            ("max_concurrent_downloads", maxConcurrentDownloads), ("cache_images", cacheImages),
            ("cache_bytes", cacheBytes), ("cache_limit", cacheLimit), ("rss", residentBytes), ("cpu", cpu),
        ]
        for (name, value) in known { if let value { fields.append((name, String(value))) } }
        return fields
    }
}
