internal import FoundationEssentials
internal import WebImage

/// One line of a list of JSON objects: `{"url":"https://…","options":["refreshCached"],"headers":{"Referer":"…"},"sha256":"…",
/// "mirrors":["https://…"],"rules":{"min_size":200}}`. Only the URL is required. A member whose name is nearly one of these refuses the list; others are reported,
/// and stay in the list.
struct JSONLine: Decodable {
    static let members = ["url", "options", "headers", "sha256", "mirrors", "rules", "columns"]

    var url: String?
    var options: [String]?
    var headers: [String: String]?
    var sha256: String?
    var mirrors: [String]?
    /// Rules of ``RuleMembers``.
    var rules: [String: JSONValue]?
    private var kept = Kept.nothing
    /// The member that has the URL: `url`, or what it is called instead.
    var urlMember = "url"
    /// Unknown members, sorted.
    var others: [String] = []

    /// What has the values for manifests, which are made when they are asked for.
    private enum Kept {
        case nothing
        case values([String: ColumnValue])
        case object(JSONMembers)
        case caption(name: String, text: String)
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
        case .object(let members): members.columns
        case .caption(let name, let text): [name: .text(text)]
        }
    }

    private mutating func noteOthers(_ names: some Sequence<String>) {
        others = names.filter { !Self.isMember($0) && !$0.hasBytes(of: urlMember) && !isKept($0) }.sorted()
    }

    private func isKept(_ name: String) -> Bool {
        switch kept {
        case .nothing: false
        case .values(let values): values[name] != nil
        case .object(let members): members[name] != nil
        case .caption(let caption, _): caption.hasBytes(of: name)
        }
    }

    /// Whether a name is that of a member that means something.
    static func isMember(_ name: String) -> Bool { members.contains { $0.hasBytes(of: name) } }

    /// Without Foundation's decoder, which takes twenty times as long; nil if there is more than a URL, a digest and columns.
    private init?(plain members: JSONMembers) {
        guard let member = Self.urlMember(members) else { return nil }
        var others: [JSONMembers.Member] = []
        for member in members.members {
            if members.isCalled("sha256", member) {
                guard let text = members.string(member) else { return nil }
                sha256 = text
            } else if members.isCalled("columns", member) {
                guard let object = members.object(member) else { return nil }
                kept = .object(object)
            } else if !members.isCalled("url", member) {
                others.append(member)
            }
        }
        url = member.url
        if let name = member.name { urlMember = name }
        guard !others.isEmpty else { return }
        if case .nothing = kept, let place = TableColumns.caption(members.names),
            case let caption = members.members[place], let text = members.string(caption)
        {
            kept = .caption(name: members.name(caption), text: text)
        }
        noteOthers(others.map { members.name($0) })
    }

    /// The member with the URL of an object that has no more than a URL, a digest and columns; nil of another, and of one whose `url` is no text.
    /// * `name`: nil: `url`, or none.
    static func urlMember(_ members: JSONMembers) -> (name: String?, url: String?)? {
        let settings: [StaticString] = ["options", "headers", "mirrors", "rules"]
        guard !members.members.contains(where: { member in settings.contains { members.isCalled($0, member) } }) else {
            return nil
        }
        if let member = members["url"] { return members.string(member).map { (nil, $0) } }
        let names = members.names.sorted()
        for place in URLColumn.places(in: names) {
            guard let text = members[names[place]].flatMap({ members.string($0) }) else { continue }
            return (names[place], text)
        }
        return (nil, nil)
    }

    /// Whether a line is meant as JSON: no URL begins with a brace.
    static func isOne(_ line: [UInt8]) -> Bool { line.first == UInt8(ascii: "{") }

    /// Nil if the line is not such an object; the URL may be missing.
    init?(_ line: [UInt8]) {
        if let members = JSONMembers(line), let plain = JSONLine(plain: members) {
            self = plain
            return
        }
        guard let read = Self.decode(JSONLine.self, line) else { return nil }
        self = read
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
            guard let near = JSONLine.nearMiss(name) else {
                // Each name of a table's columns is in each of its lines.
                if known.count < 1_000 { known.insert(ByteText(name)) }
                continue
            }
            return PrefetchError(
                .unreadableList, "line \(number): there is no member '\(String(name.prefix(40)))'",
                hint: "did you mean '\(near)'?")
        }
        do throws(WebImageError) { _ = try object?.settings() } catch {
            return PrefetchError(
                .unreadableList, "line \(number): \(error.message)", hint: "correct the line")
        }
        return nil
    }
}
