/// Extracts addresses from a sitemap (https://www.sitemaps.org/protocol.html): `<loc>` of pages, of images (`<image:loc>`) and of other
/// sitemaps. Parses only the XML that sitemaps need: tags must match, and entity definitions are refused, since they can expand a small
/// file to a large one. Input comes in pieces of any size.
struct SitemapReader {
    enum Kind: Equatable {
        case page, image, sitemap
    }

    /// The longest address or tag, and the deepest nesting.
    static let (longest, deepest) = (65_536, 32)

    private enum State: Equatable {
        case text
        /// Within `<…>`, with the open quote.
        case tag(quote: UInt8?)
        /// Within `<!-- … -->`, `<![CDATA[ … ]]>`, `<? … ?>`, up to these bytes.
        case until([UInt8], isText: Bool)
    }

    private let name: String
    private var state = State.text
    /// The tag, or a partial end of a comment.
    private var token: [UInt8] = []
    private var open: [[UInt8]] = []
    /// The text of the innermost element, if it is an address.
    private var text: [UInt8] = []
    private var line = 1
    private var hasRoot = false

    init(name: String = "the sitemap") { self.name = name }

    /// Parses a piece; `body` gets each address that ends in it, and the line of its end.
    /// - Throws: `unreadableList` with the line if it is not a sitemap; errors of `body`.
    mutating func read(
        _ bytes: ArraySlice<UInt8>, _ body: (Kind, String, Int) throws(PrefetchError) -> Void
    ) throws(PrefetchError) {
        for byte in bytes {
            if byte == UInt8(ascii: "\n") { line += 1 }
            switch state {
            case .text:
                if byte == UInt8(ascii: "<") {
                    token.removeAll(keepingCapacity: true)
                    state = .tag(quote: nil)
                } else {
                    try add(byte)
                }
            case .tag(let quote):
                if let quote {
                    token.append(byte)
                    if byte == quote { state = .tag(quote: nil) }
                } else if byte == UInt8(ascii: ">") {
                    state = .text
                    try endTag(body)
                } else {
                    token.append(byte)
                    if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
                        state = .tag(quote: byte)
                    } else {
                        try special()
                    }
                }
                if token.count > Self.longest { throw failure("a tag has no end") }
            case .until(let end, let isText):
                token.append(byte)
                guard token.count >= end.count, token.suffix(end.count).elementsEqual(end) else {
                    // The last bytes may belong to the end; the one before them does not.
                    if token.count > end.count {
                        let first = token.removeFirst()
                        if isText { try add(first, isRaw: true) }
                    }
                    continue
                }
                if isText { for byte in token.dropLast(end.count) { try add(byte, isRaw: true) } }
                state = .text
            }
        }
    }

    /// Checks that everything was closed.
    func finish() throws(PrefetchError) {
        if let name = open.last {
            throw failure("it ends within <\(String(decoding: name.prefix(40), as: UTF8.self))>")
        }
        guard state == .text else { throw failure("it ends within a tag or a comment") }
        guard hasRoot else { throw failure("there is no <urlset> and no <sitemapindex>") }
    }

    /// Detects comments, CDATA sections and instructions.
    private mutating func special() throws(PrefetchError) {
        guard token.first == UInt8(ascii: "!") || token.first == UInt8(ascii: "?") else { return }
        switch String(decoding: token, as: UTF8.self) {
        case "?": state = .until(Array("?>".utf8), isText: false)
        case "!--": state = .until(Array("-->".utf8), isText: false)
        case "![CDATA[": state = .until(Array("]]>".utf8), isText: true)
        case let begun where "!--".hasPrefix(begun) || "![CDATA[".hasPrefix(begun): return
        default: throw failure("it has a DOCTYPE, which no sitemap has")
        }
        token.removeAll(keepingCapacity: true)
    }

    private mutating func endTag(_ body: (Kind, String, Int) throws(PrefetchError) -> Void) throws(PrefetchError) {
        let isEnd = token.first == UInt8(ascii: "/")
        let isEmpty = token.last == UInt8(ascii: "/")
        let name = token.dropFirst(isEnd ? 1 : 0).prefix { !Self.isBlank($0) && $0 != UInt8(ascii: "/") }
        guard !name.isEmpty, name.allSatisfy({ $0 > 0x20 && $0 != UInt8(ascii: "<") && $0 != UInt8(ascii: "&") }) else {
            throw failure("a tag has no name")
        }
        let shown = String(decoding: name.prefix(40), as: UTF8.self)
        if isEnd {
            guard let last = open.popLast() else { throw failure("</\(shown)> closes nothing") }
            guard last.elementsEqual(name) else {
                throw failure("</\(shown)> closes <\(String(decoding: last.prefix(40), as: UTF8.self))>")
            }
            if Self.local(last) == "loc", let kind { try tell(kind, body) }
            text.removeAll(keepingCapacity: true)
            return
        }
        if open.isEmpty {
            guard !hasRoot else { throw failure("there is something after its end: <\(shown)>") }
            guard ["urlset", "sitemapindex"].contains(Self.local(Array(name))) else {
                throw failure("it begins with <\(shown)>, and not with <urlset> or <sitemapindex>")
            }
            hasRoot = true
        }
        text.removeAll(keepingCapacity: true)
        if isEmpty { return }
        guard open.count < Self.deepest else { throw failure("<\(shown)> is too deep") }
        open.append(Array(name))
    }

    private var kind: Kind? {
        switch open.last.map(Self.local) {
        case "url": .page
        case "image": .image
        case "sitemap": .sitemap
        default: nil
        }
    }

    private static func local(_ name: [UInt8]) -> String {
        String(decoding: name.lastIndex(of: UInt8(ascii: ":")).map { name[($0 + 1)...] } ?? name[...], as: UTF8.self)
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }

    /// * `isRaw`: in a CDATA section, where `&` has no meaning.
    private mutating func add(_ byte: UInt8, isRaw: Bool = false) throws(PrefetchError) {
        guard let last = open.last else {
            // Blanks around the root, and a UTF-8 byte order mark before it, are allowed.
            guard Self.isBlank(byte) || (!hasRoot && [0xEF, 0xBB, 0xBF].contains(byte)) else {
                throw failure(
                    byte == 0 || byte >= 0xFE ? "it is not in UTF-8" : "there is text outside of its elements")
            }
            return
        }
        guard Self.local(last) == "loc" else { return }
        if isRaw && byte == UInt8(ascii: "&") { text += Array("&amp;".utf8) } else { text.append(byte) }
        if text.count > Self.longest { throw failure("an address has no end") }
    }

    private func tell(
        _ kind: Kind, _ body: (Kind, String, Int) throws(PrefetchError) -> Void
    ) throws(PrefetchError) {
        var bytes = text[...]
        while let first = bytes.first, Self.isBlank(first) { bytes = bytes.dropFirst() }
        while let last = bytes.last, Self.isBlank(last) { bytes = bytes.dropLast() }
        guard !bytes.isEmpty else { return }
        guard let raw = String(validating: bytes, as: UTF8.self) else { throw failure("an address is not in UTF-8") }
        try body(kind, try resolved(raw), line)
    }

    /// Resolves XML's five entities and numeric character references.
    private func resolved(_ text: String) throws(PrefetchError) -> String {
        guard text.utf8.contains(UInt8(ascii: "&")) else { return text }
        var out = ""
        // By code points: a mark may follow an entity.
        var rest = text.unicodeScalars[...]
        while let at = rest.firstIndex(of: "&") {
            out += String(rest[..<at])
            rest = rest[at...].dropFirst()
            guard let end = rest.prefix(12).firstIndex(of: ";") else {
                throw failure("& is written &amp; in a sitemap")
            }
            let name = String(rest[..<end])
            rest = rest[end...].dropFirst()
            switch name {
            case "amp": out += "&"
            case "lt": out += "<"
            case "gt": out += ">"
            case "quot": out += "\""
            case "apos": out += "'"
            default:
                let isHex = name.hasPrefix("#x") || name.hasPrefix("#X")
                guard name.hasPrefix("#"), let number = UInt32(name.dropFirst(isHex ? 2 : 1), radix: isHex ? 16 : 10),
                    let scalar = UnicodeScalar(number), number > 0
                else { throw failure("there is no entity &\(name);") }
                out.unicodeScalars.append(scalar)
            }
        }
        return out + String(rest)
    }

    private func failure(_ why: String) -> PrefetchError {
        PrefetchError(
            .unreadableList, "line \(line) of \(name): \(why)", hint: "nothing was queued; fetch the sitemap again")
    }
}
