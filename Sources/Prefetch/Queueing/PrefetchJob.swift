/// One element of a batch's Redis list: 1 to 256 consecutive URLs of the batch, self-contained and readable with `redis-cli`.
///
/// ```
/// prefetch-job 1 urls-7f3a12c9:512:2 8f0d1c2b
/// 513<TAB>https://example.org/a.jpg
/// 514<TAB>https://example.org/b.jpg
/// ```
/// The first line has the form's version, the job's name (batch, index of its first URL, number of URLs) and the CRC-32 of the
/// rest; every other line is a line number of the list and the URL. A `!` before the number marks a line that is no URL.
package struct PrefetchJob: Sendable, Equatable {
    /// One URL of a job.
    package struct Entry: Sendable, Equatable {
        /// Line of the list, from 1.
        package var line: Int
        /// The line's text without surrounding blanks; escaped and cut where it is no text at all.
        package var url: String
        /// The list's reader saw that it can be no URL: it ends `invalidURL` without being tried.
        package var isInvalid: Bool

        package init(line: Int, url: String, isInvalid: Bool = false) {
            self.line = line
            self.url = url
            self.isInvalid = isInvalid
        }
    }

    /// The most URLs one job may have.
    package static let maxCount = 256

    /// The batch it belongs to.
    package var batch: String
    /// Index of the first URL in the batch.
    package var base: Int
    /// The URLs.
    package var entries: [Entry]

    package init(batch: String, base: Int, entries: [Entry]) {
        self.batch = batch
        self.base = base
        self.entries = entries
    }

    /// `batch:base:count`, unique in a queue.
    package var name: String { "\(batch):\(base):\(entries.count)" }

    /// The bytes that go onto the list.
    package func encoded() -> [UInt8] {
        var body: [UInt8] = []
        body.reserveCapacity(entries.reduce(0) { $0 + $1.url.utf8.count + 10 })
        for entry in entries {
            if entry.isInvalid { body.append(UInt8(ascii: "!")) }
            body.append(contentsOf: String(entry.line).utf8)
            body.append(UInt8(ascii: "\t"))
            body.append(contentsOf: entry.url.utf8)
            body.append(UInt8(ascii: "\n"))
        }
        var payload = Array("prefetch-job 1 \(name) \(CRC32.hex(of: body))\n".utf8)
        payload.append(contentsOf: body)
        return payload
    }

    /// Reads a payload; nil where it is no job of this form, or not the whole one.
    package init?(_ payload: [UInt8]) {
        guard let end = payload.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
        let head = payload[..<end].split(separator: UInt8(ascii: " "))
        guard head.count == 4, head[0].elementsEqual("prefetch-job".utf8), head[1].elementsEqual("1".utf8) else {
            return nil
        }
        let name = head[2].split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        guard name.count == 3, let base = Int(decoding: name[1]), let count = Int(decoding: name[2]),
            base >= 0, (1...Self.maxCount).contains(count)
        else { return nil }
        let body = payload[(end + 1)...]
        guard head[3].elementsEqual(CRC32.hex(of: body).utf8) else { return nil }
        var entries: [Entry] = []
        entries.reserveCapacity(count)
        for line in body.split(separator: UInt8(ascii: "\n")) {
            let isInvalid = line.first == UInt8(ascii: "!")
            guard let tab = line.firstIndex(of: UInt8(ascii: "\t")),
                let number = Int(decoding: line[(line.startIndex + (isInvalid ? 1 : 0))..<tab])
            else { return nil }
            let url = String(decoding: line[(tab + 1)...], as: UTF8.self)
            entries.append(Entry(line: number, url: url, isInvalid: isInvalid))
        }
        guard entries.count == count else { return nil }
        self.init(batch: String(decoding: name[0], as: UTF8.self), base: base, entries: entries)
    }

    /// The first bytes of something that is no job, for a sentence to a person: what is no printable ASCII as `\xNN`.
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
}

extension Int {
    /// A decimal number in bytes; nil for anything else.
    fileprivate init?(decoding bytes: ArraySlice<UInt8>) {
        guard !bytes.isEmpty, bytes.count < 19 else { return nil }
        var value = 0
        for byte in bytes {
            guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
            value = value * 10 + Int(byte - UInt8(ascii: "0"))
        }
        self = value
    }
}
