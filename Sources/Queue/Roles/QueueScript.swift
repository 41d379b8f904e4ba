internal import Redis

/// The scripts of the queue, from the files of the folder `Scripts`, which are embedded in the program.
enum QueueScript {
    /// Assembles a script: its flags and name, what it uses of the shared prelude, its own lines. The name is the second line of the text:
    /// MONITOR, SCRIPT LOAD and a proxy in front of Redis then show which script a call runs.
    ///
    /// The flags tell Redis when to run it. None: it adds to the queue, and a full Redis refuses it, which is the back-pressure.
    /// `allow-oom`: it changes the queue and drains it in the end, so a full Redis must still run it. `allow-oom,no-writes`: it changes
    /// nothing, and runs also if Redis takes no writes because its disk is full.
    static func script(_ file: [UInt8]) -> RedisScript {
        let head = file.split(separator: newline, maxSplits: 2)
        let name = head[1].prefix { $0 != UInt8(ascii: ":") }
        let own = code(file)
        let source = Array(([head[0], name] + prelude(for: own) + own).joined(separator: [newline]))
        return RedisScript(
            name: String(decoding: name.dropFirst(3), as: UTF8.self), source: String(decoding: source, as: UTF8.self))
    }

    private static let newline = UInt8(ascii: "\n")

    /// The lines of a file without comments.
    private static func code(_ file: [UInt8]) -> [ArraySlice<UInt8>] {
        file.split(separator: newline).filter { line in
            let text = line.drop { $0 == UInt8(ascii: " ") }
            return !text.starts(with: "--".utf8) && !text.starts(with: "#!".utf8)
        }
    }

    /// A definition of the prelude, from `local` to the line before the next one. It uses only what is defined above it.
    private struct Definition {
        let name: UInt64
        let lines: [ArraySlice<UInt8>]
        let words: Set<UInt64>

        init(_ lines: [ArraySlice<UInt8>]) {
            let head = QueueScript.words(in: lines[0])
            name = head[1] == QueueScript.function ? head[2] : head[1]
            self.lines = lines
            words = Set(lines.lazy.flatMap(QueueScript.words))
        }
    }

    private static let definitions: [Definition] = code(PackageResources.prelude_lua)
        .reduce(into: [[ArraySlice<UInt8>]]()) { parts, line in
            if line.starts(with: "local ".utf8) { parts.append([line]) } else { parts[parts.count - 1].append(line) }
        }.map(Definition.init)

    /// The lines of the prelude that some code uses, directly or by others of these. Redis compiles a script when it is loaded, and
    /// creates its functions anew in every call.
    private static func prelude(for code: [ArraySlice<UInt8>]) -> [ArraySlice<UInt8>] {
        var used = Set(code.lazy.flatMap(words))
        let kept = definitions.reversed().filter { definition in
            guard used.contains(definition.name) else { return false }
            used.formUnion(definition.words)
            return true
        }
        return kept.reversed().flatMap(\.lines)
    }

    private static let function = words(in: Array("function".utf8)[...])[0]

    /// A number for each word of a line. Every process computes them while it starts; two words with the same number would only send a
    /// definition that is not used.
    private static func words(in line: ArraySlice<UInt8>) -> [UInt64] {
        var words: [UInt64] = []
        var word: UInt64 = 0
        for byte in line {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
                word = word &* 131 &+ UInt64(byte)
            default:
                if word != 0 { words.append(word) }
                word = 0
            }
        }
        if word != 0 { words.append(word) }
        return words
    }
}
