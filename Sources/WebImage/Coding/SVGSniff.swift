/// Finds the root element of an SVG after the prolog that XML 1.0 (section 2.8) allows.
enum SVGSniff {
    /// Sniffing gives up after this many bytes of prolog.
    private static let longestProlog = 4096

    /// `.format(.svg)`, `.undecided` inside the prolog, or `.noImage`.
    static func sniff(_ prefix: UnsafeRawBufferPointer) -> FormatSniff {
        let text = UnsafeRawBufferPointer(rebasing: prefix.prefix(longestProlog))
        let undecided: FormatSniff = text.count < longestProlog ? .undecided : .noImage
        var offset = text.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
        while true {
            while offset < text.count, isBlank(text[offset]) { offset += 1 }
            if offset == text.count { return undecided }
            guard text[offset] == UInt8(ascii: "<") else { return .noImage }
            let rest = text[offset...]
            let terminator: StaticString
            switch match(rest, "<svg", orPartOf: ["<!--", "<?", "<!doctype svg"]) {
            case .root: return rest.count == 4 || !isNameByte(text[offset + 4]) ? .format(.svg) : .noImage
            case .part: return undecided
            case .nothing: return .noImage
            case .prolog(0): terminator = "-->"
            case .prolog(1): terminator = "?>"
            // An internal subset is in brackets and may contain `>`.
            case .prolog: terminator = doctypeTerminator(rest)
            }
            guard let end = find(terminator, in: rest) else { return undecided }
            offset = end
        }
    }

    private enum Match {
        case root, part, nothing
        case prolog(Int)
    }

    /// Case-insensitive, for HTML doctypes in the wild.
    private static func match(
        _ rest: Slice<UnsafeRawBufferPointer>, _ root: String, orPartOf prologs: [String]
    ) -> Match {
        for (index, candidate) in ([root] + prologs).enumerated() {
            let length = min(rest.count, candidate.utf8.count)
            guard zip(rest, candidate.utf8).allSatisfy({ lowercase($0) == $1 }) else { continue }
            if length < candidate.utf8.count { return .part }
            return index == 0 ? .root : .prolog(index - 1)
        }
        return .nothing
    }

    private static func doctypeTerminator(_ rest: Slice<UnsafeRawBufferPointer>) -> StaticString {
        let bracket = rest.firstIndex(of: UInt8(ascii: "[")) ?? rest.endIndex
        let close = rest.firstIndex(of: UInt8(ascii: ">")) ?? rest.endIndex
        return bracket < close ? "]>" : ">"
    }

    private static func find(_ terminator: StaticString, in rest: Slice<UnsafeRawBufferPointer>) -> Int? {
        let length = terminator.utf8CodeUnitCount
        return terminator.withUTF8Buffer { terminator in
            var offset = rest.startIndex
            while offset + length <= rest.endIndex {
                if rest[offset..<offset + length].elementsEqual(terminator) { return offset + length }
                offset += 1
            }
            return nil
        }
    }

    private static func lowercase(_ byte: UInt8) -> UInt8 {
        byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        !isBlank(byte) && byte != UInt8(ascii: ">") && byte != UInt8(ascii: "/")
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || (byte >= 0x09 && byte <= 0x0D) }
}
