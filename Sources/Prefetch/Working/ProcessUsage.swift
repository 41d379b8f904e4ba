internal import Glibc

enum ProcessUsage {
    /// CPU time since its start; nil if unknown.
    static var milliseconds: Int? {
        var usage = rusage()
        guard getrusage(Int32(RUSAGE_SELF.rawValue), &usage) == 0 else { return nil }
        return [usage.ru_utime, usage.ru_stime].reduce(0) { $0 + $1.tv_sec * 1000 + Int($1.tv_usec) / 1000 }
    }

    /// By the second number of /proc/self/statm, in pages (proc(5)); nil if unknown.
    static var residentBytes: Int? {
        guard let file = fopen("/proc/self/statm", "re") else { return nil }
        defer { fclose(file) }
        var buffer = [CChar](repeating: 0, count: 128)
        guard fgets(&buffer, Int32(buffer.count), file) != nil else { return nil }
        let text = String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let parts = text.split(separator: " ")
        guard parts.count > 1, let pages = Int(parts[1]) else { return nil }
        return pages * Int(getpagesize())
    }
}
