internal import Glibc

/// Free memory, by proc(5) and the kernel's page on cgroup v2. These files are made when they are read, so that no disk is waited for.
enum MachineMemory {
    /// Bytes that this process may still take: of the machine, and of its control group where that has a limit; nil if unknown.
    static var available: Int? {
        guard let machine = number("/proc/meminfo", after: "MemAvailable:") else { return nil }
        guard let limit = number("/sys/fs/cgroup/memory.max", after: ""),
            let used = number("/sys/fs/cgroup/memory.current", after: "")
        else { return machine * 1024 }
        return min(machine * 1024, max(0, limit - used))
    }

    /// The number after a word at the start of a line.
    private static func number(_ path: String, after word: String) -> Int? {
        guard let file = fopen(path, "re") else { return nil }
        defer { fclose(file) }
        var buffer = [CChar](repeating: 0, count: 128)
        while fgets(&buffer, Int32(buffer.count), file) != nil {
            let line = String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            guard line.hasPrefix(word) else { continue }
            return Int(line.dropFirst(word.count).drop { $0 == " " }.prefix { $0.isNumber })
        }
        return nil
    }
}
