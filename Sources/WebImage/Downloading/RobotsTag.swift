/// The prohibitions of `X-Robots-Tag` for programs that collect images.
enum RobotsTag {
    /// Those that img2dataset refuses by default; `noml`, by which sites say the same; `none`, which is noindex and nofollow.
    private static let refused: Set<ByteText> = ["noai", "noimageai", "noindex", "noimageindex", "noml", "none"]
    private static let everyone: Set<ByteText> = ["*", "robots"]
    /// Directives with a value, whose name is not a program.
    private static let valued: Set<ByteText> = [
        "unavailable_after", "max-snippet", "max-image-preview", "max-video-preview",
    ]

    /// Why an image is refused, and which options of the commands take it.
    static func message(_ directive: String) -> String {
        "X-Robots-Tag: \(directive); --ignore-robots-tag takes it, --own-host skips all rules of a host you own"
    }

    /// The first prohibition in the lines of a response; nil if there is none. Directives are separated by commas; semicolons, spaces and quotes, with
    /// which some sites separate them, do so too, since no directive has them. A name with a colon before them is that of the program they are
    /// for, up to the next such name or the end of the line, unless it is the name of a directive with a value, or a part of a date.
    static func refusal(of lines: [String], agent: String) -> String? {
        for line in lines {
            var concernsUs = true
            for part in line.utf8.split(whereSeparator: { $0 == UInt8(ascii: ",") || $0 == UInt8(ascii: ";") }) {
                var rest = part
                while true {
                    let colon = rest.firstIndex(of: UInt8(ascii: ":"))
                    var words = Self.words(of: rest[..<(colon ?? rest.endIndex)])
                    let name = colon == nil ? nil : words.popLast()
                    if concernsUs, let directive = words.first(where: { refused.contains($0) }) { return directive }
                    guard let colon else { break }
                    rest = rest[colon...].dropFirst()
                    guard let name, let first = name.utf8.first, !(0x30...0x39).contains(first) else { continue }
                    if valued.contains(name) {
                        rest = rest.drop(while: isSpace).drop { !isSpace($0) }
                    } else {
                        concernsUs = everyone.contains(name) || name.isASCIICaseInsensitivelyEqual(to: agent)
                    }
                }
            }
        }
        return nil
    }

    private static func words(of bytes: Substring.UTF8View) -> [String] {
        bytes.split { isSpace($0) || $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "'") }
            .map { Substring($0).asciiLowercased }
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
}
