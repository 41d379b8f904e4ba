internal import FoundationEssentials
internal import WebImage

/// One line of a list of JSON objects: `{"url":"https://…","options":["refreshCached"],"headers":{"Referer":"…"},"sha256":"…",
/// "mirrors":["https://…"],"rules":{"min_size":200}}`. Only the URL is required. A member whose name is nearly one of these refuses the list; others are reported,
/// and stay in the list.
final class JSONLine: Decodable {
    static let members = ["url", "options", "headers", "sha256", "mirrors", "rules", "columns"]

    private(set) var url: String?
    private var options: [String]?
    private var headers: [String: String]?
    private var sha256: String?
    private var mirrors: [String]?
    /// Rules of ``RuleMembers``.
    private var rules: [String: JSONValue]?
    private var kept = Kept.nothing
    /// The member that has the URL: `url`, or what it is called instead.
    private(set) var urlMember = "url"
    /// Unknown members, sorted.
    private(set) var others: [String] = []

    /// What has the values for manifests, which are made when they are asked for.
    private enum Kept {
        case nothing
        case values([String: ColumnValue])
        /// An object of these.
        case object(JSONMembers, JSONMembers.Member)
        case caption(name: String, text: String)
        /// A line that was written here.
        case line([UInt8])
    }

    private struct Member: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: Member.self)
        func value<Value: Decodable>(_ name: String) throws -> Value? {
            try fields.decodeIfPresent(Value.self, forKey: Member(stringValue: name))
        }
        let names = fields.allKeys.map(\.stringValue)
        if names.contains(where: { $0.utf8.elementsEqual("url".utf8) }) {
            url = try value("url")
        } else {
            // The same name may be that of an image's bytes.
            let names = names.sorted()
            for place in URLColumn.places(in: names) {
                guard let text = try? value(names[place]) as String? else { continue }
                (url, urlMember) = (text, names[place])
                break
            }
        }
        options = try value("options")
        headers = try value("headers")
        sha256 = try value("sha256")
        mirrors = try value("mirrors")
        rules = try value("rules")
        if let columns = try value("columns") as [String: JSONValue]? {
            kept = .values(columns.mapValues(\.column))
        } else if let place = TableColumns.caption(names), let text: String = try? value(names[place]) {
            kept = .caption(name: names[place], text: text)
        }
        noteOthers(names)
    }

    /// Values for manifests; not a setting. Without them, the member with a caption.
    var columns: [String: ColumnValue]? {
        switch kept {
        case .nothing: nil
        case .values(let values): values
        case .object(let members, let object):
            members.object(object)?.columns ?? Self.decode(JSONLine.self, members.bytes)?.columns
        case .caption(let name, let text): [name: .text(text)]
        case .line(let line): Self.read(line)?.columns
        }
    }

    private func noteOthers(_ names: some Sequence<String>) {
        others = names.filter { !Self.isMember($0) && !$0.hasBytes(of: urlMember) && !isKept($0) }.sorted()
    }

    private func isKept(_ name: String) -> Bool {
        switch kept {
        case .nothing: false
        case .values(let values): values[name] != nil
        case .object(let members, let object): members.hasMember(Array(name.utf8), in: object)
        case .caption(let caption, _): caption.hasBytes(of: name)
        case .line: true
        }
    }

    /// Whether a name is that of a member that means something.
    static func isMember(_ name: String) -> Bool { members.contains { $0.hasBytes(of: name) } }

    /// Without Foundation's decoder, which takes twenty times as long; nil if there is more than a URL, a digest and columns.
    private init?(_ members: JSONMembers, by plan: Plan) {
        func text(_ place: Int) -> String? { members.string(members.members[place]) }
        urlMember = plan.urlMember
        if let place = plan.url {
            guard let text = text(place) else { return nil }
            url = text
        }
        if let place = plan.sha256 {
            guard let text = text(place) else { return nil }
            sha256 = text
        }
        others = plan.names
        if let place = plan.columns {
            let object = members.members[place]
            guard !members.mayHaveHalves(object) || members.object(object) != nil else { return nil }
            kept = .object(members, object)
            guard plan.others.contains(where: { members.hasMember($0.bytes, in: object) }) else { return }
            others = plan.others.filter { !members.hasMember($0.bytes, in: object) }.map(\.name)
        } else if let (place, name) = plan.caption {
            guard let text = text(place) else { return nil }
            kept = .caption(name: name, text: text)
        }
    }

    /// A line that ``ImportedLine`` or ``ParquetProgram`` has written of a row: columns, and behind them a URL. Nothing else is looked at. Nil of another one.
    init?(written line: [UInt8]) {
        let (begin, name, end) = (Self.beginOfColumns, Self.nameOfURL, Self.endOfLine)
        guard line.count > begin.count + name.count + end.count, line.starts(with: begin),
            line.suffix(2).elementsEqual(end)
        else { return nil }
        let text = line[..<(line.count - end.count)]
        // A quote within the URL has a backslash in front of it, so that no name is there.
        guard let quote = text.lastPlace(of: UInt8(ascii: "\"")), quote >= begin.count + name.count,
            text[...quote].suffix(name.count).elementsEqual(name), text[quote...].place(of: UInt8(ascii: "\\")) == nil
        else { return nil }
        url = text[(quote + 1)...].withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
        kept = .line(line)
    }

    private static let beginOfColumns = Array("{\"columns\":{".utf8)
    private static let nameOfURL = Array("},\"url\":\"".utf8)
    private static let endOfLine = Array("\"}".utf8)

    /// What is where in lines of one shape.
    final class Plan: Sendable {
        let shape: JSONMembers.Shape
        fileprivate let url: Int?, sha256: Int?, columns: Int?
        fileprivate let caption: (place: Int, name: String)?
        fileprivate let urlMember: String
        /// Unknown members, sorted.
        fileprivate let others: [(name: String, bytes: [UInt8])]
        fileprivate let names: [String]

        /// Nil if there is more than a URL, a digest and columns, or one of these is of the wrong kind.
        fileprivate init?(_ members: JSONMembers) {
            func place(_ name: StaticString) -> Int? { members.members.firstIndex { members.isCalled(name, $0) } }
            let settings: [StaticString] = ["options", "headers", "mirrors", "rules"]
            let found = JSONLine.urlPlace(members)
            if case .odd = found { return nil }
            guard !settings.contains(where: { place($0) != nil }) else { return nil }
            func isOf(_ kind: JSONMembers.Kind, _ place: Int) -> Bool { members.members[place].kind == kind }
            (sha256, columns) = (place("sha256"), place("columns"))
            if let sha256, !isOf(.string, sha256) { return nil }
            if let columns, !isOf(.object, columns) { return nil }
            let names = members.names
            (shape, url) = (members.shape, found.place)
            let urlMember = found.place.map { names[$0] } ?? "url"
            self.urlMember = urlMember
            var caption = columns == nil ? TableColumns.caption(names) : nil
            if let place = caption, !isOf(.string, place) { caption = nil }
            self.caption = caption.map { ($0, names[$0]) }
            others = names.indices
                .filter { !JSONLine.isMember(names[$0]) && !names[$0].hasBytes(of: urlMember) && $0 != caption }
                .map { names[$0] }.sorted().map { ($0, Array($0.utf8)) }
            self.names = others.map(\.name)
        }
    }

    enum URLPlace {
        case at(Int), nowhere
        /// Its `url` is no text.
        case odd

        var place: Int? { if case .at(let place) = self { place } else { nil } }
    }

    /// Where the member with the URL is.
    static func urlPlace(_ members: JSONMembers) -> URLPlace {
        if let place = members.members.firstIndex(where: { members.isCalled("url", $0) }) {
            return members.members[place].kind == .string ? .at(place) : .odd
        }
        let names = members.names
        let sorted = names.indices.sorted { names[$0] < names[$1] }
        let places = URLColumn.places(in: sorted.map { names[$0] }).map { sorted[$0] }
        return places.first { members.members[$0].kind == .string }.map { .at($0) } ?? .nowhere
    }

    /// Whether a line is meant as JSON: no URL begins with a brace.
    static func isOne(_ line: [UInt8]) -> Bool { line.first == UInt8(ascii: "{") }

    /// Nil if the line is not such an object; the URL may be missing.
    static func read(_ line: [UInt8]) -> JSONLine? {
        var plan: Plan?
        return read(line, &plan)
    }

    /// * `plan`: that of the line before.
    static func read(_ line: [UInt8], _ plan: inout Plan?) -> JSONLine? {
        if let members = JSONMembers(line) {
            if plan.map({ members.has($0.shape) }) != true { plan = Plan(members) }
            if let plan, let plain = JSONLine(members, by: plan) { return plain }
        }
        return decode(JSONLine.self, line)
    }

    /// Nil if the line is not an object.
    static func object(_ line: [UInt8]) -> [String: JSONValue]? {
        decode([String: JSONValue].self, line)
    }

    /// Also of what Python's json.dumps writes, with `NaN` and `Infinity` as strings.
    private static func decode<Value: Decodable>(_ type: Value.Type, _ line: [UInt8]) -> Value? {
        if let value = try? JSONDecoder().decode(type, from: Data(line)) { return value }
        return quotingNumbers(line).flatMap { try? JSONDecoder().decode(type, from: Data($0)) }
    }

    /// A line with its numbers that JSON does not have in quotes; nil where it has none of them.
    static func quotingNumbers(_ line: [UInt8]) -> [UInt8]? {
        let quote = UInt8(ascii: "\"")
        let words = ["NaN", "Infinity", "-Infinity"].map { Array($0.utf8) }
        var (text, index) = ([UInt8](), line.startIndex)
        var isQuoted = false, isFound = false
        while index < line.endIndex {
            let byte = line[index]
            if !isQuoted, let word = words.first(where: { line[index...].starts(with: $0) }) {
                text += [quote] + word + [quote]
                index += word.count
                isFound = true
                continue
            }
            if isQuoted, byte == UInt8(ascii: "\\"), index + 1 < line.endIndex {
                text.append(byte)
                index += 1
            } else if byte == quote {
                isQuoted.toggle()
            }
            text.append(line[index])
            index += 1
        }
        return isFound ? text : nil
    }

    /// The member that a name misspells: edit distance up to two, or one for the short `url`.
    static func nearMiss(_ name: String) -> String? {
        guard URLColumn.rank(name) == nil else { return nil }
        let near = members.map { ($0, EditDistance.between($0, name.lowercased())) }.min { $0.1 < $1.1 }
        guard let (known, distance) = near, distance <= max(1, min(2, known.count / 3)) else { return nil }
        return known
    }

    /// Why a member of a line is refused that means nothing; nil if it is no misspelled one.
    static func misspelled(_ name: String, _ line: Int) -> PrefetchError? {
        nearMiss(name).map { near in
            PrefetchError(
                .unreadableList, "line \(line): there is no member '\(String(name.prefix(40)))'",
                hint: "did you mean '\(near)'?")
        }
    }

    private var hasSettings: Bool {
        options != nil || headers != nil || sha256 != nil || mirrors != nil || rules != nil
    }

    /// Nil without settings.
    /// - Throws: a message about an invalid setting.
    func settings() throws(WebImageError) -> URLSettings? {
        guard hasSettings else { return nil }
        if let sha256, Digest(hex: sha256.lowercased()) == nil {
            throw WebImageError(.invalidConfiguration, "sha256 has to be 64 hexadecimal digits")
        }
        guard URLSettings.mayHave(headers ?? [:]) else {
            throw WebImageError(
                .invalidConfiguration,
                "a URL has at most \(RequestSettings.maxHeaders) headers of its own, of \(RequestSettings.mostHeaderBytes) bytes in all"
            )
        }
        for (name, value) in headers ?? [:] {
            if let objection = HTTPHeader(name, value).objection {
                throw WebImageError(.invalidConfiguration, objection)
            }
        }
        for mirror in mirrors ?? [] where !URLLines.isURL(mirror) {
            throw WebImageError(.invalidConfiguration, "a mirror has to be a URL")
        }
        let options = try WebImageOptions(names: options ?? [])
        for name in options.intersection([.scaleDownLargeImages, .transformAnimatedImage]).names {
            throw WebImageError(
                .invalidConfiguration, "\(name) is for a whole batch, because it changes the keys of its images")
        }
        return URLSettings(
            options: options, headers: headers, sha256: sha256, mirrors: mirrors ?? [],
            rules: try RuleMembers.rules(rules ?? [:]))
    }
}

package enum ListFormat: String, Sendable, CaseIterable {
    /// By each line: one that begins with `{` is an object.
    case auto
    case plain
    case jsonl
    /// Tables, converted to lines (``ListInput``).
    case csv, tsv
    /// A sitemap, converted to lines.
    case sitemap

    /// Why a line is not in this format; nil if it is.
    /// * `object`: the parsed line, if it is an object.
    /// * `known`: names of members that were looked at.
    func objection(
        to line: [UInt8], _ object: JSONLine?, number: Int, known: inout Set<ByteText>
    ) -> PrefetchError? {
        let isObject = JSONLine.isOne(line)
        if self == .jsonl && !isObject {
            return PrefetchError(
                .unreadableList, "line \(number) is not a JSON object",
                hint: "--input-format auto takes lines of both kinds")
        }
        guard isObject else { return nil }
        if self == .plain {
            return PrefetchError(
                .unreadableList, "line \(number) begins as a JSON object does, and the list is to be plain",
                hint: "--input-format auto takes lines of both kinds")
        }
        for name in object?.others ?? [] where !known.contains(ByteText(name)) {
            if let error = JSONLine.misspelled(name, number) { return error }
            // Each name of a table's columns is in each of its lines.
            if known.count < 1_000 { known.insert(ByteText(name)) }
        }
        do throws(WebImageError) { _ = try object?.settings() } catch {
            return PrefetchError(
                .unreadableList, "line \(number): \(error.message)", hint: "correct the line")
        }
        return nil
    }
}
