/// One element of a batch's Redis list: 1 to 256 consecutive URLs of the batch, self-contained and readable with `redis-cli`.
///
/// ```
/// prefetch-job 1 urls-7f3a12c9:512:2 8f0d1c2b
/// 513<TAB>https://example.org/a.jpg
/// +20,4<TAB>b
/// ```
/// The first line has the version of the form, the job's name (batch, index of its first URL, number of URLs) and the CRC-32 of the rest;
/// every other line has a line number of the list and the URL. A `!` before the number marks an invalid URL. `+20,4` is the next line
/// number, and a URL that shares its first 20 and last 4 bytes with the one before, with the text between them: lists have many similar
/// URLs of one site, and Redis copies what is pushed four times until it is reported. `+20` shares no end. A job with a URL that has its
/// own settings has form 2, in which a TAB and the settings, as JSON, may follow the text of a URL.
package struct PrefetchJob: Sendable, Equatable {
    package struct Entry: Sendable, Equatable {
        /// Line of the list, from 1.
        package var line: Int
        /// The line's text without surrounding blanks; escaped and cut if it is not text.
        package var url: String
        /// The list reader found it invalid: it ends `invalidURL` without a try.
        package var isInvalid: Bool
        package var settings: URLSettings?
        /// Other columns of the list. They stay in it: jobs do not contain them.
        package var columns: [String: ColumnValue]?
        /// Whether only its place is known: its line was changed since it was queued.
        package private(set) var isLost = false

        /// One whose line was changed.
        package init(lostAt line: Int) {
            self.init(line: line, url: "the line was changed since it was queued", isInvalid: true)
            isLost = true
        }

        package init(line: Int, url: String, isInvalid: Bool = false, settings: URLSettings? = nil) {
            self.line = line
            self.url = url
            self.isInvalid = isInvalid
            self.settings = settings
        }

        /// Its share of a job's bytes.
        package var byteCount: Int { url.utf8.count + (settings?.text.utf8.count ?? 0) }

        /// Equal for two entries that one transfer can serve.
        package var identity: String { settings.map { "\(url)\t\($0.text)" } ?? url }
    }

    package static let maxCount = 256
    /// The longest URL, in bytes, which is the longest line of a list.
    package static let maxURLBytes = 65_536
    /// Bytes of URLs and settings at which a job is full, 256 KiB: a job has less than this plus one entry, counted uncompressed.
    package static let fullBytes = 256 << 10
    /// The most bytes of URLs and settings of a valid job, 1 MiB; no producer that keeps to ``fullBytes`` makes a larger one. A few bytes
    /// can expand to many, since a URL states how much it shares with the one before.
    package static let maxBytes = 1 << 20

    package var batch: String
    /// Index of the first URL in the batch.
    package var base: Int
    package var entries: [Entry]

    package init(batch: String, base: Int, entries: [Entry]) {
        self.batch = batch
        self.base = base
        self.entries = entries
    }

    /// `batch:base:count`, unique in a queue.
    package var name: String { "\(batch):\(base):\(entries.count)" }

    package func encoded() -> [UInt8] {
        var body: [UInt8] = []
        body.reserveCapacity(entries.count * 32)
        var last: Entry?
        for entry in entries {
            // An invalid line is never used as a prefix.
            defer { last = entry.isInvalid ? nil : entry }
            var (shared, tail) = (0, 0)
            if let last, !entry.isInvalid, entry.line == last.line + 1 {
                (shared, tail) = Self.common(entry.url, last.url)
            }
            entry.url.utf8Span.span.withUnsafeBufferPointer { bytes in
                if shared < Self.minShared {
                    (shared, tail) = (0, 0)
                    if entry.isInvalid { body.append(UInt8(ascii: "!")) }
                    body.append(contentsOf: String(entry.line).utf8)
                } else {
                    if tail < Self.minShared { tail = 0 }
                    body.append(UInt8(ascii: "+"))
                    body.append(contentsOf: String(shared).utf8)
                    if tail > 0 {
                        body.append(UInt8(ascii: ","))
                        body.append(contentsOf: String(tail).utf8)
                    }
                }
                body.append(UInt8(ascii: "\t"))
                body.append(contentsOf: UnsafeBufferPointer(rebasing: bytes[shared..<(bytes.count - tail)]))
                if let settings = entry.settings {
                    body.append(UInt8(ascii: "\t"))
                    body.append(contentsOf: settings.text.utf8)
                }
                body.append(UInt8(ascii: "\n"))
            }
        }
        let form = entries.contains { $0.settings != nil } ? 2 : 1
        var payload = Array("prefetch-job \(form) \(name) \(CRC32.hex(of: body))\n".utf8)
        payload.append(contentsOf: body)
        return payload
    }

    /// How many bytes two texts have in common at their beginnings, and of the rest at their ends.
    private static func common(_ one: String, _ other: String) -> (first: Int, last: Int) {
        one.utf8Span.span.withUnsafeBufferPointer { one in
            other.utf8Span.span.withUnsafeBufferPointer { other in
                let most = min(one.count, other.count)
                var (first, last) = (0, 0)
                while first < most && one[first] == other[first] { first += 1 }
                while first + last < most && one[one.count - 1 - last] == other[other.count - 1 - last] { last += 1 }
                return (first, last)
            }
        }
    }

    /// Nil if the payload is not a complete job of this form.
    package init?(_ payload: [UInt8]) {
        guard let end = payload.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
        let head = payload[..<end].split(separator: UInt8(ascii: " "))
        guard head.count == 4, head[0].elementsEqual("prefetch-job".utf8) else { return nil }
        let hasSettings = head[1].elementsEqual("2".utf8)
        guard hasSettings || head[1].elementsEqual("1".utf8) else { return nil }
        let name = head[2].split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        guard name.count == 3, let base = Int(decoding: name[1]), let count = Int(decoding: name[2]),
            base >= 0, (1...Self.maxCount).contains(count)
        else { return nil }
        let body = payload[(end + 1)...]
        guard head[3].elementsEqual(CRC32.hex(of: body).utf8) else { return nil }
        let read = body.withUnsafeBufferPointer { Self.entries(in: $0, count: count, hasSettings: hasSettings) }
        guard let entries = read else { return nil }
        guard entries.count == count else { return nil }
        self.init(batch: String(decoding: name[0], as: UTF8.self), base: base, entries: entries)
    }

    /// Fewer shared bytes are written again.
    private static let minShared = 4

    private static func entries(in body: UnsafeBufferPointer<UInt8>, count: Int, hasSettings: Bool) -> [Entry]? {
        var entries: [Entry] = []
        entries.reserveCapacity(count)
        var (at, last, tail): (Int, [UInt8], [UInt8]) = (0, [], [])
        var left = maxBytes
        while at < body.count {
            let rest = UnsafeBufferPointer(rebasing: body[at...])
            guard let end = rest.firstIndex(of: UInt8(ascii: "\n")),
                let tab = rest[..<end].firstIndex(of: UInt8(ascii: "\t"))
            else { return nil }
            var (urlEnd, settings): (Int, URLSettings?) = (end, nil)
            if hasSettings, let next = rest[(tab + 1)..<end].firstIndex(of: UInt8(ascii: "\t")) {
                settings = URLSettings(text: String(decoding: rest[(next + 1)..<end], as: UTF8.self))
                guard settings != nil else { return nil }
                urlEnd = next
            }
            let (mark, url) = (rest[0], UnsafeBufferPointer(rebasing: rest[(tab + 1)..<urlEnd]))
            let isInvalid = mark == UInt8(ascii: "!")
            let isNext = mark == UInt8(ascii: "+")
            let numbers = rest[(isInvalid || isNext ? 1 : 0)..<tab]
            let comma = isNext ? numbers.firstIndex(of: UInt8(ascii: ",")) : nil
            guard let number = Int(decoding: numbers[..<(comma ?? numbers.endIndex)]) else { return nil }
            var line = number
            tail.removeAll(keepingCapacity: true)
            if isNext {
                guard let before = entries.last, !before.isInvalid, number <= last.count else { return nil }
                if let comma {
                    guard let count = Int(decoding: numbers[(comma + 1)...]), number + count <= last.count else {
                        return nil
                    }
                    tail.append(contentsOf: last.suffix(count))
                }
                line = before.line + 1
                last.removeLast(last.count - number)
            } else {
                last.removeAll(keepingCapacity: true)
            }
            let length = last.count + url.count + tail.count
            left -= length + (settings?.text.utf8.count ?? 0)
            guard length <= maxURLBytes, left >= 0, entries.count < count else { return nil }
            last.append(contentsOf: url)
            last.append(contentsOf: tail)
            entries.append(
                Entry(line: line, url: String(decoding: last, as: UTF8.self), isInvalid: isInvalid, settings: settings))
            at += end + 1
        }
        return entries
    }

    /// The first bytes of an invalid job for messages; other than printable ASCII as `\xNN`.
    package static func excerpt(of bytes: [UInt8]) -> String {
        let text = bytes.prefix(40).reduce(into: "") { text, byte in
            if (0x20..<0x7F).contains(byte) && byte != UInt8(ascii: "\\") {
                text.unicodeScalars.append(UnicodeScalar(byte))
            } else {
                text += "\\x" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
            }
        }
        return "'\(text)'" + (bytes.count > 40 ? "…" : "")
    }

    /// The job in `parts` jobs of nearly equal size, at least one URL each.
    package func split(into parts: Int) -> [PrefetchJob] {
        let size = max(1, (entries.count + parts - 1) / parts)
        return stride(from: 0, to: entries.count, by: size).map { start in
            PrefetchJob(
                batch: batch, base: base + start, entries: Array(entries[start..<min(start + size, entries.count)]))
        }
    }

    /// The URLs at these positions as jobs of their own, and those between them, in order.
    package func isolating(_ positions: Set<Int>) -> [(job: PrefetchJob, isIsolated: Bool)] {
        var parts: [(job: PrefetchJob, isIsolated: Bool)] = []
        func add(_ range: Range<Int>, _ isIsolated: Bool) {
            guard !range.isEmpty else { return }
            parts.append(
                (PrefetchJob(batch: batch, base: base + range.lowerBound, entries: Array(entries[range])), isIsolated))
        }
        var start = 0
        for position in positions.sorted() where entries.indices.contains(position) {
            add(start..<position, false)
            add(position..<(position + 1), true)
            start = position + 1
        }
        add(start..<entries.count, false)
        return parts
    }
}

extension Int {
    /// A decimal number; nil for anything else.
    fileprivate init?(decoding bytes: some Collection<UInt8>) {
        // Below 10^14, so that sums cannot overflow.
        guard !bytes.isEmpty, bytes.count < 15 else { return nil }
        var value = 0
        for byte in bytes {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
            value = value * 10 + Int(byte - UInt8(ascii: "0"))
        }
        self = value
    }
}
