internal import CLinux
internal import Glibc
internal import Threading
internal import WebImage

/// The event log of one worker process, in its own file: `fsck --history` compares it with Redis.
///
/// One line per event, and one write(2) for all lines of a step, with O_APPEND: a killed process leaves whole lines, except possibly a torn
/// last one. Lines are written before the data is sent to Redis. `docs/PROTOCOL.md` has the format.
package final class HistoryLog: Sendable {
    static let suffix = ".history"

    package let path: String
    private let file: Int32
    private let sentCount = Locked(0)

    /// Starts a history in a folder, which is created if missing.
    /// - Throws: `inputOutput` or `cacheUnavailable` if the file cannot be created.
    package init(folder: String, queue: String) throws(PrefetchError) {
        if mkdir(folder, 0o755) != 0 && errno != EEXIST { throw Self.failure("make", folder) }
        let host = ThisHost.name
        var start = Self.now
        let name = String(decoding: host.utf8.map { $0 == UInt8(ascii: "/") ? UInt8(ascii: "-") : $0 }, as: UTF8.self)
        var (path, file): (String, Int32)
        repeat {
            path = "\(folder)/\(name)-\(getpid())-\(start)\(Self.suffix)"
            file = clinux_open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0o644)
            // Another worker of this process started in the same millisecond.
            start += 1
        } while file < 0 && errno == EEXIST
        guard file >= 0 else { throw Self.failure("make", path) }
        (self.path, self.file) = (path, file)
        write("\(start)\tprefetch-history\t1\t\(host)\t\(getpid())\t\(queue)\n")
    }

    deinit { close(file) }

    func joined(_ worker: String) { write("\(Self.now)\tjoined\t\(worker)\n") }

    /// Its jobs were reaped; it takes another name.
    func lost(_ worker: String) { write("\(Self.now)\tlost\t\(worker)\n") }

    func left(_ worker: String) { write("\(Self.now)\tleft\t\(worker)\n") }

    /// Claimed these jobs, with the outcomes they had already.
    func claimed(_ worker: String, _ claims: [QueueJobs.Claim]) {
        let head = "\(Self.now)\tclaimed\t\(worker)\t"
        write(
            claims.map { claim in
                let set = claim.outcomes.enumerated().filter { $0.element != 0 }
                return "\(head)\(claim.job.name)\t\(Self.items(set.map { (claim.job.base + $0.offset, $0.element) }))\n"
            }.joined())
    }

    /// A URL was not in the cache, and is requested now.
    func began(_ worker: String, _ job: PrefetchJob, position: Int) {
        write("\(Self.now)\tbegan\t\(worker)\t\(job.name)\t\(job.base + position)\n")
    }

    func settled(_ worker: String, _ job: PrefetchJob, _ items: [SettledEntry]) {
        let list = Self.items(items.map { (job.base + $0.position, $0.outcome.rawValue) })
        write("\(Self.now)\tsettled\t\(worker)\t\(job.name)\t\(list)\n")
    }

    /// It is about to report these outcomes; returns the number of the report.
    func sent(_ worker: String, _ reports: [QueueReports.Report]) -> Int {
        let number = sentCount.withLock { count in
            count += 1
            return count
        }
        let head = "\(Self.now)\tsent\t\(worker)\t"
        write(
            reports.map { report in
                let list = Self.items(report.settled.map { (report.base + $0.position, $0.outcome.rawValue) })
                return "\(head)\(report.job)\t\(number)\t\(list)\n"
            }.joined())
        return number
    }

    /// Redis replied: which outcomes it was first to settle, or that the batch is over. Refused ones are sent again, under another number.
    /// * `server`: the `run_id` of the Redis start that replied.
    func confirmed(
        _ worker: String, _ number: Int, server: String, _ reports: [QueueReports.Report],
        _ answers: [QueueReports.Answer]
    ) {
        let head = "\(Self.now)\tconfirmed\t\(worker)\t"
        write(
            zip(reports, answers).filter { $1.refusal == nil || !$1.first.isEmpty }.map { report, answer in
                let list =
                    answer.isOver && answer.first.isEmpty
                    ? "over" : Self.items(answer.first.map { (report.base + $0.position, $0.outcome.rawValue) })
                return "\(head)\(report.job)\t\(number)\t\(server)\t\(list)\n"
            }.joined())
    }

    func released(_ worker: String, _ jobs: [String]) {
        let head = "\(Self.now)\treleased\t\(worker)\t"
        write(jobs.map { "\(head)\($0)\n" }.joined())
    }

    /// `512=1,513=5`; `-` if empty.
    private static func items(_ pairs: [(index: Int, code: UInt8)]) -> String {
        pairs.isEmpty ? "-" : pairs.map { "\($0.index)=\($0.code)" }.joined(separator: ",")
    }

    /// Milliseconds since 1970.
    private static var now: Int {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return time.tv_sec * 1000 + time.tv_nsec / 1_000_000
    }

    private func write(_ text: String) {
        guard !text.isEmpty else { return }
        var text = text
        text.withUTF8 { bytes in
            var rest = UnsafeRawBufferPointer(bytes)
            while !rest.isEmpty {
                let count = Glibc.write(file, rest.baseAddress, rest.count)
                if count < 0 && errno == EINTR { continue }
                // A full disk: the worker reports that itself.
                guard count > 0 else { return }
                rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            }
        }
    }

    private static func failure(_ verb: String, _ path: String) -> PrefetchError {
        let code = errno
        return PrefetchError(
            [ENOSPC, EDQUOT, EIO].contains(code) ? .inputOutput : .cacheUnavailable,
            "cannot \(verb) \(path): \(String(cString: strerror(code)))",
            hint: "name a folder that this user may write: --history DIR")
    }
}
