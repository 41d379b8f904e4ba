internal import CLinux
internal import Glibc
internal import Threading

/// Tracks which files of a cache directory are known to be on disk. Unsynced files published by other processes are synced before they
/// count, and old files cost no syncfs(2).
///
/// One syncfs covers the files of all processes. A file is durable if its last change is older than the start of a successful syncfs, of
/// this process or recorded by another one in `.prefetch/synced`. Both times are from the file system's clock, which also dates the files.
/// If that clock is set, the comparison allows for the change, at the cost of one extra syncfs.
final class WriteOut: Sendable {
    struct Stamp: Equatable {
        /// Nanoseconds since 1970 by the file system's clock.
        var began: Int64
        /// Wall clock minus uptime in nanoseconds at that time: it changes if the clock is set, and with each boot.
        var offset: Int64

        /// Whether a file last changed at that time is on disk.
        func covers(_ change: Int64, offset now: Int64) -> Bool {
            let (difference, overflow) = now.subtractingReportingOverflow(offset)
            guard !overflow, difference > .min else { return false }
            let (limit, isFar) = began.subtractingReportingOverflow(abs(difference))
            return !isFar && change < limit
        }
    }

    private struct State {
        var youngest = Int64.min
        /// Files stored by this process, and how many of them a syncfs has covered.
        var stored = 0, syncedStores = 0
        var synced: Stamp?
        /// A write error is reported only once: later successes prove nothing to other processes.
        var hasFailed = false
    }

    private static let path = ".prefetch/synced"
    private static let magic: Int64 = 0x7072_6566_7379_6e63
    private let state = Locked(State())

    func found(changedAt change: Int64) {
        state.withLock { if change > $0.youngest { $0.youngest = change } }
    }

    func stored() { state.withLock { $0.stored += 1 } }

    /// Whether a found or stored file may not be on disk yet. Reads the stamp of other processes if its own does not suffice.
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

    /// Syncs the file system, and records it for other processes.
    /// * `isReadOnly`: do not record it.
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

    /// Now, by the clock that dates the files: a server's on a network file system.
    private static func time(of note: Int32) -> Int64 {
        var status = stat()
        if note >= 0, futimens(note, nil) == 0, fstat(note, &status) == 0 { return nanoseconds(status.st_mtim) }
        return clock(CLOCK_REALTIME_COARSE)
    }

    private static func noted(in root: Int32) -> Stamp? {
        let flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY
        guard let file = OpenFile(clinux_open_beneath(root, path, flags, 0)),
            let bytes = OpenFile.read(file.descriptor, at: 0, limit: 32), bytes.count == 32
        else { return nil }
        let words = bytes.withUnsafeBytes { Array($0.bindMemory(to: Int64.self)) }.map(Int64.init(littleEndian:))
        // Concurrent writes may mix; the checksum detects that.
        guard words[0] == magic, words[3] == words[1] ^ words[2] else { return nil }
        return Stamp(began: words[1], offset: words[2])
    }

    private static func write(_ stamp: Stamp, to note: Int32) {
        let words = [magic, stamp.began, stamp.offset, stamp.began ^ stamp.offset].map(\.littleEndian)
        // If it fails, other processes sync themselves.
        _ = words.withUnsafeBytes { pwrite(note, $0.baseAddress, $0.count, 0) }
    }

    /// Wraps around for dates past 2262 instead of trapping.
    static func nanoseconds(_ time: timespec) -> Int64 { Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec) }

    private static func clock(_ id: clockid_t) -> Int64 {
        var time = timespec()
        clock_gettime(id, &time)
        return nanoseconds(time)
    }

    private static var offset: Int64 { clock(CLOCK_REALTIME) - clock(CLOCK_BOOTTIME) }
}
