internal import Redis

/// The transitions of a queue, one script each: the files of the folder `Scripts`, which are bytes in the program.
enum QueueScript {
    /// A script by its file.
    static func script(_ file: [UInt8]) -> RedisScript { script(file, step: []) }

    /// One of the steps of a repair.
    static func step(_ file: [UInt8]) -> RedisScript { script(file, step: PackageResources.step_lua) }

    /// A script of the folder `Scripts`: its flags and its name, the shared prelude, `step` where it is one of a repair, its own lines. The
    /// name is the second line of the text: MONITOR, SCRIPT LOAD and a proxy between a program and Redis show which script a call runs.
    ///
    /// The flags say what it does to the queue, by which Redis judges whether to run it. None: it adds to it, and a full Redis refuses
    /// it, which is the back-pressure. `allow-oom`: it changes it, and drains it in the end, so a full Redis must still run it.
    /// `allow-oom,no-writes`: it changes nothing, and runs also where Redis takes no writes, because its disk is full.
    private static func script(_ file: [UInt8], step: [UInt8]) -> RedisScript {
        let head = String(decoding: file, as: UTF8.self).split(separator: "\n").prefix(2)
        let name = head[1].prefix { $0 != ":" }
        let lines = [head[0], name] + [PackageResources.prelude_lua, step, file].flatMap(code)
        return RedisScript(name: String(name.dropFirst(3)), source: lines.joined(separator: "\n"))
    }

    /// The lines of a file behind the comment at its head.
    private static func code(_ file: [UInt8]) -> some Sequence<Substring> {
        String(decoding: file, as: UTF8.self).split(separator: "\n").drop { $0.hasPrefix("#!") || $0.hasPrefix("--") }
    }
}
