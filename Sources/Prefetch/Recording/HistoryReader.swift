internal import CLinux
internal import Glibc

/// Reads the events of one batch from the histories of a folder, in constant memory: each file once, from its beginning.
struct HistoryReader {
    private let folder: String
    private let queue: String
    private let batch: [UInt8]
    private var workers: [[UInt8]: Int] = [:]
    /// Redis starts, by their `run_id`.
    private(set) var servers: [[UInt8]: Int] = [:]
    private(set) var files = 0
    /// Lines torn by the death of their writer.
    private(set) var torn = 0

    /// * `queue`: histories of other queues are skipped.
    init(folder: String, queue: String, batch: String) {
        self.folder = folder
        self.queue = queue
        self.batch = Array(batch.utf8)
    }

    /// Calls `body` with every event of the batch: in the order of each process, one process after the other.
    /// - Throws: `notFound` if there is no history; `inputOutput` if one cannot be read.
    mutating func forEach(_ body: (HistoryEvent) -> Void) throws(PrefetchError) {
        for name in try names() { try read(folder + "/" + name, body) }
    }

    private func names() throws(PrefetchError) -> [String] {
        let listing = opendir(folder)
        guard let listing else {
            throw PrefetchError(
                .notFound, "there are no histories in \(folder): \(String(cString: strerror(errno)))",
                hint: "workers keep them with --history DIR")
        }
        defer { closedir(listing) }
        var names: [String] = []
        while let entry = readdir(listing) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name.hasSuffix(HistoryLog.suffix) { names.append(name) }
        }
        guard !names.isEmpty else {
            throw PrefetchError(
                .notFound, "there are no histories in \(folder)", hint: "workers keep them with --history DIR")
        }
        return names.sorted()
    }

    private mutating func read(_ path: String, _ body: (HistoryEvent) -> Void) throws(PrefetchError) {
        let file = clinux_open(path, O_RDONLY | O_CLOEXEC, 0)
        guard file >= 0 else { throw Self.failure(path) }
        defer { close(file) }
        files += 1
        var buffer = [UInt8](repeating: 0, count: 1 << 18)
        var kept = 0
        var isOfQueue: Bool?
        while true {
            // A line longer than the buffer: a group of 256 outcomes is under 4 KB, but the file may be damaged.
            if kept == buffer.count { buffer += [UInt8](repeating: 0, count: buffer.count) }
            let start = kept
            let count = buffer.withUnsafeMutableBytes { Glibc.read(file, $0.baseAddress! + start, $0.count - start) }
            if count < 0 && errno == EINTR { continue }
            guard count >= 0 else { throw Self.failure(path) }
            if count == 0 { break }
            let end = kept + count
            let used = buffer.withUnsafeBytes { bytes in
                lines(UnsafeRawBufferPointer(rebasing: bytes[..<end]), &isOfQueue, body)
            }
            if isOfQueue == false { return }
            buffer.withUnsafeMutableBytes { bytes in
                bytes.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[used..<end]))
            }
            kept = end - used
        }
        if kept > 0 { torn += 1 }
    }

    /// Parses the whole lines; returns their size in bytes.
    private mutating func lines(
        _ bytes: UnsafeRawBufferPointer, _ isOfQueue: inout Bool?, _ body: (HistoryEvent) -> Void
    ) -> Int {
        var start = 0
        while start < bytes.count,
            let found = memchr(bytes.baseAddress! + start, Int32(UInt8(ascii: "\n")), bytes.count - start)
        {
            let end = bytes.baseAddress!.distance(to: UnsafeRawPointer(found))
            let line = UnsafeRawBufferPointer(rebasing: bytes[start..<end])
            start = end + 1
            guard isOfQueue != nil else {
                let head = Fields(line)
                isOfQueue = head[1].elementsEqual("prefetch-history".utf8) && head[5].elementsEqual(queue.utf8)
                if isOfQueue == false { return bytes.count }
                continue
            }
            take(line, body)
        }
        return start
    }

    private mutating func take(_ line: UnsafeRawBufferPointer, _ body: (HistoryEvent) -> Void) {
        let fields = Fields(line)
        let job = fields[3]
        guard job.count > batch.count, job[batch.count] == UInt8(ascii: ":"), job.starts(with: batch) else {
            if fields.count < 3 { torn += 1 }
            return
        }
        let kind: HistoryEvent.Kind
        let items: [(index: Int, code: UInt8)]?
        switch fields[1].first {
        // claimed, confirmed and sent; settled is longer.
        case UInt8(ascii: "c") where fields.count == 5:
            kind = .claimed
            items = Self.items(fields[4])
        case UInt8(ascii: "c") where fields.count == 7:
            kind = .confirmed(server: Self.number(of: fields[5], in: &servers))
            items = fields[6].elementsEqual("over".utf8) ? [] : Self.items(fields[6])
        case UInt8(ascii: "s") where fields[1].count == 4:
            kind = .sent
            items = Self.items(fields[5])
        default: return
        }
        let numbers = job.dropFirst(batch.count + 1).split(separator: UInt8(ascii: ":"))
        guard let items, numbers.count == 2, let base = Self.integer(numbers[0]), let count = Self.integer(numbers[1])
        else {
            torn += 1
            return
        }
        let worker = Self.number(of: fields[2], in: &workers)
        body(HistoryEvent(kind: kind, worker: worker, range: base..<(base + count), items: items))
    }

    private static func number(of name: UnsafeRawBufferPointer, in names: inout [[UInt8]: Int]) -> Int {
        let key = Array(name)
        if let known = names[key] { return known }
        names[key] = names.count
        return names.count - 1
    }

    /// `512=1,513=5`; nil if invalid.
    private static func items(_ text: UnsafeRawBufferPointer) -> [(index: Int, code: UInt8)]? {
        if text.count == 1, text[0] == UInt8(ascii: "-") { return [] }
        var items: [(index: Int, code: UInt8)] = []
        var (index, number, isCode) = (0, 0, false)
        for byte in text {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9") where number < 1 << 50:
                number = number * 10 + Int(byte - UInt8(ascii: "0"))
            case UInt8(ascii: "=") where !isCode:
                (index, number, isCode) = (number, 0, true)
            case UInt8(ascii: ",") where isCode && number < 256:
                items.append((index, UInt8(number)))
                (number, isCode) = (0, false)
            default: return nil
            }
        }
        guard isCode, number < 256 else { return nil }
        items.append((index, UInt8(number)))
        return items
    }

    private static func integer(_ digits: Slice<UnsafeRawBufferPointer>) -> Int? {
        digits.count < 18 ? Int(String(decoding: digits, as: UTF8.self)) : nil
    }

    private static func failure(_ path: String) -> PrefetchError {
        PrefetchError(.inputOutput, "cannot read \(path): \(String(cString: strerror(errno)))")
    }
}

/// The TAB-separated fields of a line, seven at most; missing ones are empty.
private struct Fields {
    private let line: UnsafeRawBufferPointer
    private let ends: [7 of Int]
    let count: Int

    init(_ line: UnsafeRawBufferPointer) {
        var ends: [7 of Int] = .init(repeating: line.count)
        var (count, start) = (0, 0)
        while count < 7 {
            count += 1
            guard start < line.count,
                let found = memchr(line.baseAddress! + start, Int32(UInt8(ascii: "\t")), line.count - start)
            else { break }
            ends[count - 1] = line.baseAddress!.distance(to: UnsafeRawPointer(found))
            start = ends[count - 1] + 1
        }
        self.line = line
        self.ends = ends
        self.count = count
    }

    subscript(position: Int) -> UnsafeRawBufferPointer {
        guard position < count else { return UnsafeRawBufferPointer(rebasing: line[0..<0]) }
        let start = position == 0 ? 0 : ends[position - 1] + 1
        return UnsafeRawBufferPointer(rebasing: line[min(start, ends[position])..<ends[position]])
    }
}
