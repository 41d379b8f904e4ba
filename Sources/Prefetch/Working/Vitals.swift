internal import Glibc

/// What this process takes of its machine, as a worker says it with each sign of life.
enum Vitals {
    /// `rss` in bytes and `cpu` in milliseconds since its start; what cannot be read is left out.
    static var now: [(String, String)] {
        var values: [(String, String)] = []
        if let bytes = residentBytes { values.append(("rss", String(bytes))) }
        var usage = rusage()
        if getrusage(Int32(RUSAGE_SELF.rawValue), &usage) == 0 {
            let times = [usage.ru_utime, usage.ru_stime]
            let milliseconds = times.reduce(0) { $0 + $1.tv_sec * 1000 + Int($1.tv_usec) / 1000 }
            values.append(("cpu", String(milliseconds)))
        }
        return values
    }

    /// The second number of /proc/self/statm, in pages (proc(5)).
    private static var residentBytes: Int? {
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
