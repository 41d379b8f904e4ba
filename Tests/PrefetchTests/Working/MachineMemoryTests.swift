import Glibc
import TestSupport
import Testing

@testable import Prefetch

@Suite("Free memory of the machine and of control groups")
struct MachineMemoryTests {
    private let folder = TemporaryDirectory()
    private static let mebibyte = 1 << 20

    private func available(group: String, _ files: [String: String]) -> Int? {
        for path in ["proc", "proc/self", "cgroup", "cgroup/system.slice", "cgroup/system.slice/worker.service"] {
            mkdir(folder.path(path), 0o755)
        }
        folder.write(Array("MemTotal:  8388608 kB\nMemAvailable:    4194304 kB\n".utf8), to: "proc/meminfo")
        folder.write(Array("4:memory:/other\n0::\(group)\n".utf8), to: "proc/self/cgroup")
        for (name, text) in files { folder.write(Array("\(text)\n".utf8), to: "cgroup/\(name)") }
        return MachineMemory(proc: folder.path("proc"), groups: folder.path("cgroup")).available
    }

    private static func group(_ path: String, max: String, current: Int, cached: Int) -> [String: String] {
        [
            "\(path)memory.max": max, "\(path)memory.current": "\(current * mebibyte)",
            "\(path)memory.stat":
                "anon 1\ninactive_file \(cached * mebibyte)\nactive_file \(mebibyte)\nslab_reclaimable \(mebibyte)",
        ]
    }

    @Test("Without a limit it is what the machine has; without meminfo it is unknown")
    func machine() {
        #expect(available(group: "/", [:]) == 4096 * Self.mebibyte)
        #expect(available(group: "/", Self.group("", max: "max", current: 100, cached: 0)) == 4096 * Self.mebibyte)
        #expect(MachineMemory(proc: folder.path("none"), groups: folder.path("cgroup")).available == nil)
    }

    @Test("In a group with a limit it is what is left of the limit; the page cache does not count as used")
    func limit() {
        // A container sees its own group as the root.
        let own = Self.group("", max: "\(1024 * Self.mebibyte)", current: 1000, cached: 600)
        #expect(available(group: "/", own) == (1024 - (1000 - 602)) * Self.mebibyte)
        #expect(available(group: "/../other", own) == (1024 - (1000 - 602)) * Self.mebibyte)
    }

    @Test("The limit of a unit counts, and that of the slice around it")
    func unit() {
        let unit = Self.group("system.slice/worker.service/", max: "\(1024 * Self.mebibyte)", current: 300, cached: 98)
        #expect(available(group: "/system.slice/worker.service", unit) == 824 * Self.mebibyte)
        let slice = Self.group("system.slice/", max: "\(512 * Self.mebibyte)", current: 512, cached: 10)
        #expect(available(group: "/system.slice/worker.service", slice) == 12 * Self.mebibyte)
    }
}
