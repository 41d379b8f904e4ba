internal import Redis

/// What a worker measured between two heartbeats: what ``LimitCause`` is told from. Shares are percent of that time.
package struct WorkerFigures: Sendable, Equatable {
    /// The most hosts in ``hostWaits``.
    package static let maxHosts = 3

    /// Whether its last claim returned no job.
    package var lacksWork = false
    /// Share in which all slots were in use and further URLs waited for one.
    package var slotsFull = 0
    /// Share of the transfers' time before the header of the response: connecting, and waiting for the server.
    package var answering = 0
    /// Share in which the configured rate held transfers back.
    package var rateLimited = 0
    /// Bytes of responses per second, headers included.
    package var received = 0
    /// The hosts with the most URLs that wait although slots are free.
    package var hostWaits: [HostWait] = []
    /// The longest claim or report in milliseconds, and the share in which one was pending.
    package var redisLongest = 0, redisBusy = 0
    /// Whether Redis refused its last report.
    package var isRefused = false
    /// Age of the oldest pending file call in milliseconds.
    package var fileOldest = 0
    /// Share of the time of the threads for checks that was spent in file calls, or in which bodies waited for their file, if that is more.
    package var fileBusy = 0
    /// Processors of the machine, and the share of all of them that was in use, by whatever program.
    package var processors = 1, machineBusy = 0
    /// Percent of one processor: the worker, of that its threads for checks, and the thread of its transfers.
    package var cpu = 0, checkCPU = 0, transferCPU = 0

    package init() {}

    /// * `fields`: of the record of a worker; a missing one is 0.
    init(fields: [String: String]) {
        func number(_ name: String) -> Int { fields[name].flatMap { Int(plausible: $0) }.map { max(0, $0) } ?? 0 }
        (lacksWork, isRefused) = (number("lacks_work") == 1, number("redis_refuses") == 1)
        (slotsFull, answering, rateLimited) = (number("slots_full"), number("answering"), number("rate_limited"))
        received = number("received")
        hostWaits = Self.hostWaits(fields["host_waits"] ?? "")
        (redisLongest, redisBusy) = (number("redis_longest"), number("redis_busy"))
        (fileOldest, fileBusy) = (number("file_oldest"), number("file_busy"))
        (processors, machineBusy) = (max(1, number("processors")), number("machine_busy"))
        (cpu, checkCPU, transferCPU) = (number("cpu_share"), number("cpu_checks"), number("cpu_transfers"))
    }

    var fields: [(String, String)] {
        let waits = hostWaits.prefix(Self.maxHosts).map { "\($0.reason.rawValue) \($0.count) \($0.host)" }
        let numbers = [
            ("lacks_work", lacksWork ? 1 : 0), ("slots_full", slotsFull), ("answering", answering),
            ("rate_limited", rateLimited), ("received", received),
            ("redis_longest", redisLongest), ("redis_busy", redisBusy),
            ("redis_refuses", isRefused ? 1 : 0), ("file_oldest", fileOldest), ("file_busy", fileBusy),
            ("processors", processors), ("machine_busy", machineBusy), ("cpu_share", cpu), ("cpu_checks", checkCPU),
            ("cpu_transfers", transferCPU),
        ]
        return numbers.map { ($0, String($1)) } + [("host_waits", waits.joined(separator: "\n"))]
    }

    /// Lines of `reason count host`; others are ignored.
    private static func hostWaits(_ text: String) -> [HostWait] {
        text.split(atByte: "\n").prefix(maxHosts).compactMap { line in
            let words = line.split(atByte: " ", maxSplits: 2)
            guard words.count == 3, let reason = HostWait.Reason(rawValue: String(words[0])),
                let count = Int(plausible: words[1]), count > 0
            else { return nil }
            return HostWait(host: String(words[2].prefix(300)), reason: reason, count: count)
        }
    }
}
