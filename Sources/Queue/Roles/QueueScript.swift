internal import Redis

/// The scripts of the queue, from the files of the folder `Scripts`, which are embedded in the program.
enum QueueScript {
    static func script(_ file: [UInt8]) -> RedisScript { script(file, step: []) }

    static func step(_ file: [UInt8]) -> RedisScript { script(file, step: PackageResources.step_lua) }

    /// Assembles a script: its flags and name, the shared prelude, `step` for a repair, its own lines. The name is the second line of the
    /// text: MONITOR, SCRIPT LOAD and a proxy in front of Redis then show which script a call runs.
    ///
    /// The flags tell Redis when to run it. None: it adds to the queue, and a full Redis refuses it, which is the back-pressure.
    /// `allow-oom`: it changes the queue and drains it in the end, so a full Redis must still run it. `allow-oom,no-writes`: it changes
    /// nothing, and runs also if Redis takes no writes because its disk is full.
    private static func script(_ file: [UInt8], step: [UInt8]) -> RedisScript {
        let head = file.split(separator: newline, maxSplits: 2)
        let name = head[1].prefix { $0 != UInt8(ascii: ":") }
        var source = Array(head[0]) + [newline] + name + [newline]
        for part in [PackageResources.prelude_lua, step, file] { source += code(part) }
        if source.last == newline { source.removeLast() }
        return RedisScript(
            name: String(decoding: name.dropFirst(3), as: UTF8.self), source: String(decoding: source, as: UTF8.self))
    }

    private static let newline = UInt8(ascii: "\n")

    /// What follows the comment at the head of a file.
    private static func code(_ file: [UInt8]) -> ArraySlice<UInt8> {
        var rest = file[...]
        while rest.first == newline || rest.starts(with: "#!".utf8) || rest.starts(with: "--".utf8) {
            rest = rest.drop { $0 != newline }.dropFirst()
        }
        return rest
    }
}
