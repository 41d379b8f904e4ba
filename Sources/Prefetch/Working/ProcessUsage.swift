internal import Glibc
internal import WebImage

enum ProcessUsage {
    /// CPU time since its start, with that of the processes that decode for it; nil if unknown.
    static func milliseconds(with manager: ImageManager) -> Int? {
        milliseconds.map { $0 + Int((manager.coder.sandbox?.processorTime ?? .zero) / .milliseconds(1)) }
    }

    private static var milliseconds: Int? {
        var usage = rusage()
        guard getrusage(Int32(RUSAGE_SELF.rawValue), &usage) == 0 else { return nil }
        let (user, system) = (usage.ru_utime, usage.ru_stime)
        return (user.tv_sec + system.tv_sec) * 1000 + Int(user.tv_usec) / 1000 + Int(system.tv_usec) / 1000
    }

    /// Time that all processors of this machine were busy, and all of it, in clock ticks since it started, by the first line of /proc/stat
    /// (proc(5)); nil if unknown.
    static var machine: (busy: Int, all: Int)? {
        guard let words = firstLine(of: "/proc/stat")?.split(separator: " "), words.first == "cpu" else { return nil }
        // user, nice, system, idle, iowait, irq, softirq, steal; guests are part of user.
        let ticks = words.dropFirst().prefix(8).compactMap { Int($0) }
        guard ticks.count >= 5 else { return nil }
        let all = ticks.reduce(0, +)
        return (all - ticks[3] - ticks[4], all)
    }

    /// By the second number of /proc/self/statm, in pages (proc(5)); nil if unknown.
    static var residentBytes: Int? {
        guard let parts = firstLine(of: "/proc/self/statm")?.split(separator: " "), parts.count > 1,
            let pages = Int(parts[1])
        else { return nil }
        return pages * Int(getpagesize())
    }

    private static func firstLine(of path: String) -> String? {
        guard let file = fopen(path, "re") else { return nil }
        defer { fclose(file) }
        var buffer = [CChar](repeating: 0, count: 256)
        guard fgets(&buffer, Int32(buffer.count), file) != nil else { return nil }
        return String(
            decoding: buffer.prefix { $0 != 0 && $0 != 10 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
