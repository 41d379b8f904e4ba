internal import CLinux
internal import Glibc
internal import Threading

/// What of a cache directory is known to be on the disk, so that a file which another process published, and which nobody has written out yet,
/// is written out before it counts, and an old file costs no syncfs(2).
///
/// One syncfs covers the files of all processes. So a file is durable where its last change is older than the begin of a syncfs that succeeded:
/// one of this process, or one that another process noted in `.prefetch/synced`. Both times are of the file system's clock, which dates the
/// files too. A clock that was set in between makes the comparison void by as much as it was set: then there is one syncfs more.
final class WriteOut: Sendable {
    /// The begin of a syncfs that succeeded.
    struct Stamp: Equatable {
        /// Nanoseconds since 1970 by the file system's clock.
        var began: Int64
        /// The difference of this machine's clock to its uptime then, in nanoseconds: it changes where the clock is set, and with each boot.
        var offset: Int64

        /// Whether a file that was last changed then is on the disk.
        func covers(_ change: Int64, offset now: Int64) -> Bool {
            let (difference, overflow) = now.subtractingReportingOverflow(offset)
            guard !overflow, difference > .min else { return false }
            let (limit, isFar) = began.subtractingReportingOverflow(abs(difference))
            return !isFar && change < limit
        }
    }

    private struct State {
        /// The last change of the youngest file that was found.
        var youngest = Int64.min
        /// Files stored by this process, and those of them that a syncfs has covered.
        var stored = 0, syncedStores = 0
        var synced: Stamp?
        /// A write that failed is told once: what later calls say of the same files is worth nothing to others.
        var hasFailed = false
    }

    private static let path = ".prefetch/synced"
    private static let magic: Int64 = 0x7072_6566_7379_6e63
    private let state = Locked(State())

    /// A file was found that may be counted.
    func found(changedAt change: Int64) {
        state.withLock { if change > $0.youngest { $0.youngest = change } }
    }

    /// A file was stored, and has its name.
    func stored() { state.withLock { $0.stored += 1 } }

    /// Whether a file that was found or stored may not be on the disk yet. Reads what other processes noted, where this process cannot tell.
    func isPending(in root: Int32) -> Bool {
        let (hasStored, youngest, own) = state.withLock { ($0.stored > $0.syncedStores, $0.youngest, $0.synced) }
        if hasStored { return true }
        guard youngest > .min else { return false }
        let offset = Self.offset
        if own?.covers(youngest, offset: offset) == true { return false }
        guard let noted = Self.noted(in: root), noted.covers(youngest, offset: offset) else { return true }
        state.withLock { if ($0.synced?.began ?? .min) < noted.began { $0.synced = noted } }
        return false
    }

    /// Writes the file system out, and notes it for other processes.
    ///
    /// * `isReadOnly`: whether nothing may be noted there.
    /// - Returns: 0 or an errno.
    func sync(_ root: Int32, isReadOnly: Bool = false) -> Int32 {
        let note = isReadOnly ? -1 : clinux_open_beneath(root, Self.path, O_RDWR | O_CREAT | O_CLOEXEC, 0o666)
        defer { if note >= 0 { close(note) } }
        let stored = state.withLock { $0.stored }
        let stamp = Stamp(began: Self.time(of: note), offset: Self.offset)
        guard clinux_syncfs(root) == 0 else {
            let code = errno
            state.withLock { $0.hasFailed = true }
            return code
        }
        let hasFailed = state.withLock { state in
            state.syncedStores = max(state.syncedStores, stored)
            if (state.synced?.began ?? .min) < stamp.began || state.synced?.offset != stamp.offset {
                state.synced = stamp
            }
            return state.hasFailed
        }
        if !hasFailed, note >= 0 { Self.write(stamp, to: note) }
        return 0
    }

    /// Now, by the clock that dates the files: that of a server, where the file system is one's.
    private static func time(of note: Int32) -> Int64 {
        var status = stat()
        if note >= 0, futimens(note, nil) == 0, fstat(note, &status) == 0 { return nanoseconds(status.st_mtim) }
        return clock(CLOCK_REALTIME_COARSE)
    }

    /// What a process noted last; nil where nobody did.
    private static func noted(in root: Int32) -> Stamp? {
        let flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY
        guard let file = OpenFile(clinux_open_beneath(root, path, flags, 0)),
            let bytes = OpenFile.read(file.descriptor, at: 0, limit: 32), bytes.count == 32
        else { return nil }
        let words = bytes.withUnsafeBytes { Array($0.bindMemory(to: Int64.self)) }.map(Int64.init(littleEndian:))
        // Two processes may write at the same moment: a mixture of both has another sum.
        guard words[0] == magic, words[3] == words[1] ^ words[2] else { return nil }
        return Stamp(began: words[1], offset: words[2])
    }

    private static func write(_ stamp: Stamp, to note: Int32) {
        let words = [magic, stamp.began, stamp.offset, stamp.began ^ stamp.offset].map(\.littleEndian)
        // Where it cannot be written, others write out for themselves.
        _ = words.withUnsafeBytes { pwrite(note, $0.baseAddress, $0.count, 0) }
    }

    /// Wraps around for a date that no clock shows (past 2262), rather than to end the process.
    static func nanoseconds(_ time: timespec) -> Int64 { Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec) }

    private static func clock(_ id: clockid_t) -> Int64 {
        var time = timespec()
        clock_gettime(id, &time)
        return nanoseconds(time)
    }

    private static var offset: Int64 { clock(CLOCK_REALTIME) - clock(CLOCK_BOOTTIME) }
}
