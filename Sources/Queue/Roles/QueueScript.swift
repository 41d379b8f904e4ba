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
        var source: [UInt8] = []
        source.reserveCapacity(2 * file.count)
        for (number, line) in ([head[0], name] + prelude(for: own) + own).enumerated() {
            if number > 0 { source.append(newline) }
            line.withUnsafeBufferPointer { source.append(contentsOf: $0) }
        }
        return RedisScript(
            name: String(decoding: name.dropFirst(3), as: UTF8.self), source: String(decoding: source, as: UTF8.self))
    }

    private static let newline = UInt8(ascii: "\n")

    /// The lines of a file without comments.
    private static func code(_ file: [UInt8]) -> [ArraySlice<UInt8>] {
        // By place and not with split(separator:) and starts(with:): every process does this while it starts, that of a test without
        // optimization.
        file.withUnsafeBufferPointer { bytes in
            var (lines, begin) = ([ArraySlice<UInt8>](), 0)
            while begin < bytes.count {
                var end = begin
                while end < bytes.count && bytes[end] != newline { end &+= 1 }
                var text = begin
                while text < end && bytes[text] == UInt8(ascii: " ") { text &+= 1 }
                let isComment =
                    end &- text >= 2
                    && (bytes[text] == UInt8(ascii: "-") && bytes[text &+ 1] == UInt8(ascii: "-")
                        || bytes[text] == UInt8(ascii: "#") && bytes[text &+ 1] == UInt8(ascii: "!"))
                if end > begin && !isComment { lines.append(file[begin..<end]) }
                begin = end &+ 1
            }
            return lines
        }
    }

    /// The definitions of the prelude, each from `local` to the line before the next one. One uses only what is defined above it.
    private struct Prelude {
        private(set) var definitions: [[ArraySlice<UInt8>]] = []
        private var uses: [[Bool]] = []
        /// By the last bits of a name's number: the names, and their definitions.
        private var slots = [(name: UInt64, index: Int)](repeating: (0, 0), count: 1024)

        init(_ lines: [ArraySlice<UInt8>]) {
            for line in lines {
                if line.starts(with: "local ".utf8) { definitions.append([]) }
                definitions[definitions.count - 1].append(line)
            }
            for (index, definition) in definitions.enumerated() {
                var head: [UInt64] = []
                QueueScript.words(in: definition[0]) { head.append($0) }
                let name = head[1] == QueueScript.function ? head[2] : head[1]
                var slot = Int(truncatingIfNeeded: name & 1023)
                while slots[slot].name != 0 { slot = (slot + 1) & 1023 }
                slots[slot] = (name, index)
            }
            for definition in definitions { uses.append(used(by: definition)) }
        }

        /// Whether some code uses each definition by itself.
        private func used(by code: [ArraySlice<UInt8>]) -> [Bool] {
            var used = [Bool](repeating: false, count: definitions.count)
            slots.withUnsafeBufferPointer { slots in
                for line in code {
                    QueueScript.words(in: line) { word in
                        var slot = Int(truncatingIfNeeded: word & 1023)
                        while slots[slot].name != 0 && slots[slot].name != word { slot = (slot &+ 1) & 1023 }
                        if slots[slot].name == word { used[slots[slot].index] = true }
                    }
                }
            }
            return used
        }

        /// Whether some code uses each definition, directly or by others.
        func needed(by code: [ArraySlice<UInt8>]) -> [Bool] {
            var needed = used(by: code)
            for index in definitions.indices.reversed() where needed[index] {
                for other in 0..<index where uses[index][other] { needed[other] = true }
            }
            return needed
        }
    }

    private static let preludeFile = Prelude(code(PackageResources.prelude_lua))

    /// The lines of the prelude that some code uses, directly or by others of these. Redis compiles a script when it is loaded, and
    /// creates its functions anew in every call.
    private static func prelude(for code: [ArraySlice<UInt8>]) -> [ArraySlice<UInt8>] {
        let needed = preludeFile.needed(by: code)
        return preludeFile.definitions.indices.filter { needed[$0] }.flatMap { preludeFile.definitions[$0] }
    }

    private static let function: UInt64 = {
        var number: UInt64 = 0
        words(in: Array("function".utf8)[...]) { number = $0 }
        return number
    }()

    /// A number for each word of a line, which is never 0. Every process computes them while it starts; two words with the same number would
    /// only send a definition that is not used.
    private static func words(in line: ArraySlice<UInt8>, _ body: (UInt64) -> Void) {
        line.withUnsafeBufferPointer { bytes in
            var (word, at) = (0 as UInt64, 0)
            while at < bytes.count {
                let byte = bytes[at]
                let letter = byte | 0x20
                if letter >= UInt8(ascii: "a") && letter <= UInt8(ascii: "z")
                    || byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9") || byte == UInt8(ascii: "_")
                {
                    word = word &* 131 &+ UInt64(truncatingIfNeeded: byte)
                } else if word != 0 {
                    body(word)
                    word = 0
                }
                at &+= 1
            }
            if word != 0 { body(word) }
        }
    }
}
