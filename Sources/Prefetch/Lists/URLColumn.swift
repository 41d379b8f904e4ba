/// What columns of tables and members of JSON lines with URLs are called.
enum URLColumn {
    /// The likeliest first, in small letters and digits alone: `Image URL`, `image_url` and `imageUrl` are one.
    private static let names = [
        "url", "imageurl", "imgurl", "photourl", "pictureurl", "fileurl", "mediaurl", "contenturl", "originalurl",
        "cocourl",
        "downloadurl", "image", "img", "photo", "picture", "imagelink", "imagesrc", "src", "link", "href", "uri", "loc",
        "thumbnailurl", "thumbnail",
    ]

    /// 0 for the likeliest; nil for a name of something else.
    static func rank(_ name: String) -> Int? {
        guard name.utf8.count <= 40 else { return nil }
        let plain = name.utf8.compactMap { byte -> UInt8? in
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): byte | 0x20
            case UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: " "): nil
            default: byte
            }
        }
        return names.firstIndex { $0.utf8.elementsEqual(plain) }
    }

    /// The places of such names, the likeliest first.
    static func places(in names: [String]) -> [Int] {
        zip(names, names.indices).compactMap { name, place in rank(name).map { ($0, place) } }.sorted(by: <).map(\.1)
    }

    /// What a cell with a URL says: without blanks and quotes around it. Bytes of another encoding than UTF-8 are percent-encoded.
    static func urlBytes(_ cell: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var text = trimmed(cell)
        let quote = UInt8(ascii: "\"")
        if text.count > 1, text.first == quote, text.last == quote { text = text.dropFirst().dropLast() }
        return (try? UTF8Span(validating: text.span)) == nil ? Array(encoded(text).utf8)[...] : text
    }

    /// The same as a text.
    static func url(_ cell: ArraySlice<UInt8>) -> String { String(decoding: urlBytes(cell), as: UTF8.self) }

    /// Without blanks around it.
    static func trimmed(_ cell: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        func isBlank(_ byte: UInt8?) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D }
        var text = cell
        while isBlank(text.first) { text.removeFirst() }
        while isBlank(text.last) { text.removeLast() }
        return text
    }

    /// Every byte outside ASCII as `%E9`: what curl and wget send for it.
    static func encoded(_ bytes: some Sequence<UInt8>) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var text: [UInt8] = []
        for byte in bytes {
            if byte < 0x80 {
                text.append(byte)
            } else {
                text += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: text, as: UTF8.self)
    }
}
