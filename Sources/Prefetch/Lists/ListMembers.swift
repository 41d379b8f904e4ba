/// Moves members of JSON lines to their `columns`, for exports.
struct ListMembers {
    private let kept: [String]
    private var found: Set<ByteText> = []
    private var line: [UInt8] = []
    /// Of the current line.
    private var number = 1
    private let name: String

    /// * `name`: what the list is called in messages.
    init(_ kept: [String], of name: String = "the list") { (self.kept, self.name) = (kept, name) }

    /// Parses a piece; `body` gets all lines in order, with their ends.
    mutating func read(
        _ bytes: ArraySlice<UInt8>, _ body: ([UInt8]) throws(PrefetchError) -> Void
    ) throws(PrefetchError) {
        var rest = bytes
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            try add(rest[...end], body)
            rest = rest[(end + 1)...]
        }
        if !rest.isEmpty { try add(rest, body) }
    }

    /// The last line, without a line end.
    /// - Throws: `unreadableList` if no line has one of the members; errors of `body`.
    mutating func finish(_ body: ([UInt8]) throws(PrefetchError) -> Void) throws(PrefetchError) {
        if !line.isEmpty { try body(try rewritten(line)) }
        guard let missing = kept.first(where: { !found.contains($0) }) else { return }
        throw PrefetchError(
            .unreadableList, "no line has the member '\(missing)' for what is kept",
            hint: "name a member as it is written in the list")
    }

    private mutating func add(
        _ part: ArraySlice<UInt8>, _ body: ([UInt8]) throws(PrefetchError) -> Void
    ) throws(PrefetchError) {
        line += part
        let isWhole = line.last == UInt8(ascii: "\n")
        // With its end.
        if line.count > LineReader.longest + 2 { throw LineReader.tooLong(number, name) }
        guard isWhole else { return }
        try body(try rewritten(line))
        line.removeAll(keepingCapacity: true)
        number += 1
    }

    private mutating func rewritten(_ line: [UInt8]) throws(PrefetchError) -> [UInt8] {
        let start = line.firstIndex { $0 == UInt8(ascii: "{") } ?? 0
        guard line[..<start].allSatisfy({ [0x20, 0x09, 0xEF, 0xBB, 0xBF].contains($0) }) else { return line }
        if let plain = plain(Array(line[start...])) {
            guard plain.count <= LineReader.longest else { throw LineReader.tooLong(number, name) }
            return plain + [UInt8(ascii: "\n")]
        }
        guard var object = JSONLine.object(Array(line[start...]))
        else { return line }
        let url = JSONLine(Array(line[start...]))?.urlMember
        var columns: [String: JSONValue] = [:]
        if case .object(let known) = object["columns"] { columns = known }
        for name in names(in: Array(object.keys)) {
            guard
                let value = JSONLine.members.contains(name) || name == url
                    ? object[name] : object.removeValue(forKey: name)
            else {
                continue
            }
            found.insert(name)
            columns[name] = value
        }
        if !columns.isEmpty { object["columns"] = .object(columns) }
        guard let bytes = JSONValue.object(object).encoded else { return line }
        // Escapes take room.
        guard bytes.count <= LineReader.longest else { throw LineReader.tooLong(number, name) }
        return bytes + [UInt8(ascii: "\n")]
    }

    /// What is kept of a line: also its caption.
    private func names(in line: [String]) -> [String] {
        guard let place = TableColumns.caption(line), !kept.contains(where: { $0.hasBytes(of: line[place]) }) else {
            return kept
        }
        return kept + [line[place]]
    }

    /// Without Foundation's coders; nil of a line that is odd, or has columns already.
    private mutating func plain(_ line: [UInt8]) -> [UInt8]? {
        guard let members = JSONMembers(line), members["columns"] == nil, let url = JSONLine(line)?.urlMember else {
            return nil
        }
        var columns: [(name: String, value: [UInt8])] = []
        var moved: Set<ByteText> = []
        for name in names(in: members.members.map(\.name)) {
            guard let member = members[name] else { continue }
            found.insert(name)
            columns.append((name, Array(members.raw(member))))
            if !JSONLine.members.contains(name), !name.hasBytes(of: url) { moved.insert(ByteText(name)) }
        }
        var all = members.members.filter { !moved.contains(ByteText($0.name)) }.map {
            (name: $0.name, value: Array(members.raw($0)))
        }
        if !columns.isEmpty {
            all.append(("columns", ImportedLine.object(columns.sorted { ByteText($0.name) < ByteText($1.name) })))
        }
        return ImportedLine.object(all.sorted { ByteText($0.name) < ByteText($1.name) })
    }
}
