/// A key as a terminal sends it.
enum TerminalKey: Equatable, Sendable {
    case character(Character)
    case control(Character)
    case up, down, left, right, pageUp, pageDown, home, end
    case enter, tab, backTab, escape, backspace

    private static let sequences: [(String, TerminalKey)] = [
        ("[A", .up), ("[B", .down), ("[C", .right), ("[D", .left), ("OA", .up), ("OB", .down), ("OC", .right),
        ("OD", .left), ("[H", .home), ("[F", .end), ("[1~", .home), ("[4~", .end), ("OH", .home), ("OF", .end),
        ("[5~", .pageUp), ("[6~", .pageDown), ("[Z", .backTab),
    ]

    /// Parses keys from input. An escape at the very end may be the start of a sequence: it stays if `isEnd` is false.
    static func take(from bytes: inout [UInt8], isEnd: Bool) -> [TerminalKey] {
        var keys: [TerminalKey] = []
        while let first = bytes.first {
            if first == 0x1B {
                let rest = bytes.dropFirst()
                if let (text, key) = sequences.first(where: { rest.starts(with: $0.0.utf8) }) {
                    keys.append(key)
                    bytes.removeFirst(1 + text.utf8.count)
                } else if let second = rest.first, second == UInt8(ascii: "[") || second == UInt8(ascii: "O") {
                    // An unknown sequence: skipped up to its last byte, or still incomplete.
                    guard let last = rest.dropFirst().firstIndex(where: { (0x40...0x7E).contains($0) }) else {
                        if isEnd { bytes.removeAll() }
                        return keys
                    }
                    bytes.removeFirst(last + 1)
                } else if rest.isEmpty && !isEnd {
                    return keys
                } else {
                    keys.append(.escape)
                    bytes.removeFirst()
                }
                continue
            }
            let length = first < 0x80 ? 1 : first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC0 ? 2 : 1
            guard bytes.count >= length else {
                if isEnd { bytes.removeAll() }
                return keys
            }
            switch first {
            case 0x0A, 0x0D: keys.append(.enter)
            case 0x09: keys.append(.tab)
            case 0x08, 0x7F: keys.append(.backspace)
            case 0x01...0x1A: keys.append(.control(Character(UnicodeScalar(first + 0x60))))
            case 0..<0x20: break
            default: String(decoding: bytes.prefix(length), as: UTF8.self).forEach { keys.append(.character($0)) }
            }
            bytes.removeFirst(length)
        }
        return keys
    }
}
