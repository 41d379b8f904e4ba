/// Moves members of JSON lines to their `columns`, for exports. What neither is kept nor means anything is left out, as columns of a table are.
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

    /// Appends the lines that end in a piece.
    mutating func read(_ bytes: ArraySlice<UInt8>, into lines: inout [UInt8]) throws(PrefetchError) {
        var rest = bytes
        while let end = rest.place(of: UInt8(ascii: "\n")) {
            try add(rest[...end], to: &lines)
            rest = rest[(end + 1)...]
        }
        if !rest.isEmpty { try add(rest, to: &lines) }
    }

    /// The last line, without a line end.
    /// - Throws: `unreadableList` if no line has one of the members.
    mutating func finish(into lines: inout [UInt8]) throws(PrefetchError) {
        if !line.isEmpty { try rewrite(line, to: &lines) }
        guard let missing = found.firstIndex(of: false) else { return }
        throw PrefetchError(
            .unreadableList, "no line has the member '\(kept[missing].name)' for what is kept",
            hint: "name a member as it is written in the list")
    }

    private mutating func add(_ part: ArraySlice<UInt8>, to lines: inout [UInt8]) throws(PrefetchError) {
        part.withUnsafeBufferPointer { line += $0 }
        let isWhole = line.last == UInt8(ascii: "\n")
        // With its end.
        if line.count > LineReader.longest + 2 { throw LineReader.tooLong(number, name) }
        guard isWhole else { return }
        try rewrite(line, to: &lines)
        line.removeAll(keepingCapacity: true)
        number += 1
    }

    private mutating func rewrite(_ line: [UInt8], to lines: inout [UInt8]) throws(PrefetchError) {
        let start = line.firstIndex { $0 == UInt8(ascii: "{") } ?? 0
        guard line[..<start].allSatisfy({ [0x20, 0x09, 0xEF, 0xBB, 0xBF].contains($0) }) else { return lines += line }
        let object = start == 0 ? line : Array(line[start...])
        guard JSONLine.isOne(object) else { return lines += line }
        let known = lines.count
        if try !writePlain(object, to: &lines) {
            // With a blank, so that it is not read by its end.
            lines += [UInt8(ascii: "{"), UInt8(ascii: " ")]
            lines += (try withFoundation(object) ?? object).dropFirst()
        }
        // Escapes take room.
        guard lines.count - known <= LineReader.longest + 1 else { throw LineReader.tooLong(number, name) }
    }

    private static let nameOfURL = Array("},\"url\":".utf8)

    /// The place among those that are kept; nil of another.
    private func place(_ name: String) -> Int? { kept.firstIndex { $0.name.hasBytes(of: name) } }

    private func rejectMisspelled(_ name: String) throws(PrefetchError) {
        if place(name) == nil, let error = JSONLine.misspelled(name, number) { throw error }
    }

    private mutating func withFoundation(_ line: [UInt8]) throws(PrefetchError) -> [UInt8]? {
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
        for name in names where object[name] != nil && !JSONLine.isMember(name) && url?.hasBytes(of: name) != true {
            try rejectMisspelled(name)
            object[name] = nil
        }
        if !columns.isEmpty { object["columns"] = .object(columns) }
        return JSONValue.object(object).encoded.map { $0 + [UInt8(ascii: "\n")] }
    }

    /// Where the members of lines of one shape go.
    private final class Plan: Sendable {
        let shape: JSONMembers.Shape
        let columns: [Int]
        /// Of settings, the URL among them.
        let settings: [Int]
        /// Of the URL, if there is no other setting.
        let url: Int?

        init(shape: JSONMembers.Shape, columns: [Int], settings: [Int], url: Int?) {
            (self.shape, self.columns, self.settings) = (shape, columns, settings)
            self.url = settings.count == 1 ? url : nil
        }
    }

    /// Nil of lines that have columns already.
    /// - Throws: `unreadableList` for a member whose name is nearly one that asks something.
    private mutating func plan(_ members: JSONMembers) throws(PrefetchError) -> Plan? {
        let url = JSONLine.urlPlace(members)
        if case .odd = url { return nil }
        guard members["columns"] == nil else { return nil }
        let names = members.names
        let caption = TableColumns.caption(names)
        var (columns, settings): ([Int], [Int]) = ([], [])
        for (place, member) in members.members.enumerated() {
            let index = kept.firstIndex { members.isCalled($0.bytes, member) }
            if let index { found[index] = true }
            if index != nil || place == caption { columns.append(place) }
            if place == url.place || JSONLine.isMember(names[place]) {
                settings.append(place)
            } else if place != caption {
                try rejectMisspelled(names[place])
            }
        }
        return Plan(shape: members.shape, columns: columns, settings: settings, url: url.place)
    }

    /// Without Foundation's coders; false of a line that is odd, or has columns already.
    private mutating func writePlain(
        _ line: [UInt8], to out: inout [UInt8]
    ) throws(PrefetchError) -> Bool {
        guard let members = JSONMembers(line) else { return false }
        if lastPlan.map({ members.has($0.shape) }) != true { lastPlan = try plan(members) }
        guard let plan = lastPlan else { return false }
        func write(_ places: [Int], after opening: StaticString) {
            opening.withUTF8Buffer { out += $0 }
            for place in places {
                if out.last != UInt8(ascii: "{") { out.append(UInt8(ascii: ",")) }
                members.write(members.members[place], to: &out)
            }
        }
        // A line that begins with its columns is read by its end.
        if let url = plan.url, !plan.columns.isEmpty {
            write(plan.columns, after: "{\"columns\":{")
            out += Self.nameOfURL
            members.writeValue(members.members[url], to: &out)
        } else {
            write(plan.settings, after: "{")
            if !plan.columns.isEmpty {
                write(plan.columns, after: plan.settings.isEmpty ? "\"columns\":{" : ",\"columns\":{")
                out.append(UInt8(ascii: "}"))
            }
        }
        out.append(UInt8(ascii: "}"))
        out.append(UInt8(ascii: "\n"))
        return true
    }
}
