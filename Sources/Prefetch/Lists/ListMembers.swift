/// Moves members of JSON lines to their `columns`, for exports.
struct ListMembers {
    private let kept: [(name: String, bytes: [UInt8])]
    /// Of these, which are in a line.
    private var found: [Bool]
    private var line: [UInt8] = []
    /// Of the current line.
    private var number = 1
    private let name: String
    /// That of the line before.
    private var lastPlan: Plan?

    /// * `name`: what the list is called in messages.
    init(_ kept: [String], of name: String = "the list") {
        self.kept = kept.map { ($0, Array($0.utf8)) }
        found = kept.map { _ in false }
        self.name = name
    }

    /// Parses a piece; `body` gets all lines in order, with their ends.
    mutating func read(
        _ bytes: ArraySlice<UInt8>, _ body: ([UInt8]) throws(PrefetchError) -> Void
    ) throws(PrefetchError) {
        var rest = bytes
        while let end = rest.place(of: UInt8(ascii: "\n")) {
            try add(rest[...end], body)
            rest = rest[(end + 1)...]
        }
        if !rest.isEmpty { try add(rest, body) }
    }

    /// The last line, without a line end.
    /// - Throws: `unreadableList` if no line has one of the members; errors of `body`.
    mutating func finish(_ body: ([UInt8]) throws(PrefetchError) -> Void) throws(PrefetchError) {
        if !line.isEmpty { try body(try rewritten(line)) }
        guard let missing = found.firstIndex(of: false) else { return }
        throw PrefetchError(
            .unreadableList, "no line has the member '\(kept[missing].name)' for what is kept",
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
        let object = start == 0 ? line : Array(line[start...])
        guard let bytes = plain(object) ?? withFoundation(object) else { return line }
        // Escapes take room.
        guard bytes.count <= LineReader.longest + 1 else { throw LineReader.tooLong(number, name) }
        return bytes
    }

    /// The place among those that are kept; nil of another.
    private func place(_ name: String) -> Int? { kept.firstIndex { $0.name.hasBytes(of: name) } }

    private mutating func withFoundation(_ line: [UInt8]) -> [UInt8]? {
        guard var object = JSONLine.object(line) else { return nil }
        let url = JSONLine.read(line)?.urlMember
        var columns: [String: JSONValue] = [:]
        if case .object(let known) = object["columns"] { columns = known }
        let names = Array(object.keys)
        let caption = TableColumns.caption(names).map { names[$0] }
        for name in kept.map(\.name) + [caption].compactMap(\.self) {
            guard
                let value = JSONLine.isMember(name) || url?.hasBytes(of: name) == true
                    ? object[name] : object.removeValue(forKey: name)
            else { continue }
            if let place = place(name) { found[place] = true }
            columns[name] = value
        }
        if !columns.isEmpty { object["columns"] = .object(columns) }
        return JSONValue.object(object).encoded.map { $0 + [UInt8(ascii: "\n")] }
    }

    /// Where the members of lines of one shape go.
    private struct Plan {
        let shape: JSONMembers.Shape
        let columns: [Int], others: [Int]
    }

    /// Nil of lines that have columns already.
    private mutating func plan(_ members: JSONMembers) -> Plan? {
        let url = JSONLine.urlPlace(members)
        if case .odd = url { return nil }
        guard members["columns"] == nil else { return nil }
        let names = members.names
        let caption = TableColumns.caption(names)
        var (columns, others): ([Int], [Int]) = ([], [])
        for (place, member) in members.members.enumerated() {
            let index = kept.firstIndex { members.isCalled($0.bytes, member) }
            if let index { found[index] = true }
            let isColumn = index != nil || place == caption
            if isColumn { columns.append(place) }
            if !isColumn || place == url.place || JSONLine.isMember(names[place]) { others.append(place) }
        }
        return Plan(shape: members.shape, columns: columns, others: others)
    }

    /// Without Foundation's coders; nil of a line that is odd, or has columns already.
    private mutating func plain(_ line: [UInt8]) -> [UInt8]? {
        guard let members = JSONMembers(line) else { return nil }
        if lastPlan.map({ members.has($0.shape) }) != true { lastPlan = plan(members) }
        guard let plan = lastPlan else { return nil }
        var out: [UInt8] = []
        out.reserveCapacity(line.count + 20)
        func write(_ places: [Int], after opening: StaticString) {
            opening.withUTF8Buffer { out += $0 }
            for place in places {
                if out.last != UInt8(ascii: "{") { out.append(UInt8(ascii: ",")) }
                out += members.rawName(members.members[place])
                out.append(UInt8(ascii: ":"))
                out += members.raw(members.members[place])
            }
        }
        if plan.columns.isEmpty {
            write(plan.others, after: "{")
        } else {
            write(plan.columns, after: "{\"columns\":{")
            write(plan.others, after: "}")
        }
        out += [UInt8(ascii: "}"), UInt8(ascii: "\n")]
        return out
    }
}
