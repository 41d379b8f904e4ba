internal import Queue
internal import Threading

/// How much of this machine's processors is used, as far as more transfers would need them. A value without a clock.
struct ProcessorLoad {
    /// What has been used since a start.
    struct Reading {
        /// Seconds: the time of the reading, the processor time of this process, that of the thread of its transfers.
        var at: Double, own: Double, transfers: Double
        /// Of all processors of the machine (``ProcessUsage/machine``).
        var machine: (busy: Int, all: Int)?
    }

    /// Seconds that a load covers: /proc/stat counts in hundredths of a second.
    private static let span = 1.0
    private var readings: [Reading] = []

    /// The share that is used, 0 to 1: the largest of this process' of all processors; that of one processor by the thread of its transfers;
    /// and that of all processors by all programs, if the workers have a large part in it. Otherwise other programs have the machine, and the
    /// kernel's scheduler takes some of it from them for more transfers.
    /// * `workers`: of the queue, taken to share this machine evenly.
    mutating func take(_ new: Reading, processors: Int, workers: Int) -> Double {
        readings.append(new)
        while readings.count > 2, new.at - readings[1].at >= Self.span { readings.removeFirst() }
        let old = readings[0]
        guard new.at > old.at else { return 0 }
        let seconds = new.at - old.at
        let own = (new.own - old.own) / seconds / Double(max(1, processors))
        var load = max(own, (new.transfers - old.transfers) / seconds)
        if own * Double(max(1, workers)) * 100 >= Double(LimitCause.ownShare), let now = new.machine,
            let past = old.machine, now.all > past.all
        {
            load = max(load, Double(now.busy - past.busy) / Double(now.all - past.all))
        }
        return min(1, max(0, load))
    }
}
