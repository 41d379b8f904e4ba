internal import Glibc

/// Free memory, by proc(5) and the kernel's page on cgroup v2. These files are made when they are read, so that no disk is waited for.
struct MachineMemory {
    var proc = "/proc"
    var groups = "/sys/fs/cgroup"

    /// Bytes that this process may still take: of the machine, of its control group, and of each group around that; nil if unknown.
    var available: Int? {
        guard let machine = number("\(proc)/meminfo", after: "MemAvailable:") else { return nil }
        var free = machine * 1024
        // Version 2 has the one line without names of controllers. In a namespace the path is relative to its root, and begins with `..` outside.
        var path = line("\(proc)/self/cgroup", after: "0::/") ?? ""
        if path.hasPrefix("..") { path = "" }
        while true {
            free = min(free, left(in: path.isEmpty ? groups : "\(groups)/\(path)") ?? free)
            guard !path.isEmpty else { return free }
            path = String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
        }
    }

    /// What a group may take up to its limit; nil if it has none. The kernel drops cached files before it refuses memory.
    private func left(in group: String) -> Int? {
        guard let limit = number("\(group)/memory.max", after: ""),
            let used = number("\(group)/memory.current", after: "")
        else { return nil }
        var cached = 0
        // Once: the kernel adds up its counters over all processors whenever this file is read.
        _ = first(of: "\(group)/memory.stat") { line -> Bool? in
            let words = line.split(separator: " ")
            if words.count == 2, Self.cached.contains(words[0]) { cached += Int(words[1]) ?? 0 }
            return nil
        }
        return max(0, limit - max(0, used - cached))
    }

    /// What the kernel drops if memory is short, by its names in memory.stat.
    private static let cached: [Substring] = ["inactive_file", "active_file", "slab_reclaimable"]

    /// The number after a word at the start of a line.
    private func number(_ path: String, after word: String) -> Int? {
        line(path, after: word).flatMap { Int($0.drop { $0 == " " }.prefix { $0.isNumber }) }
    }

    /// What follows a word at the start of a line.
    private func line(_ path: String, after word: String) -> String? {
        first(of: path) { $0.hasPrefix(word) ? String($0.dropFirst(word.count)) : nil }
    }

    /// The first result for a line of a file.
    private func first<Result>(of path: String, _ result: (String) -> Result?) -> Result? {
        guard let file = fopen(path, "re") else { return nil }
        defer { fclose(file) }
        var buffer = [CChar](repeating: 0, count: 4096)
        while fgets(&buffer, Int32(buffer.count), file) != nil {
            let bytes = buffer.prefix { $0 != 0 && $0 != 10 }.map { UInt8(bitPattern: $0) }
            if let found = result(String(decoding: bytes, as: UTF8.self)) { return found }
        }
        return nil
    }
}
