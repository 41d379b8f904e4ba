package import Glibc

/// Paths as texts. A path is bytes, and a Swift string is UTF-8: a byte that is none of a character becomes one of 128 characters of a
/// private plane, and is that byte again where the path is opened.
package enum PathText {
    private static let escapes: ClosedRange<UInt32> = 0x10FE80...0x10FEFF

    private static func byte(_ scalar: UnicodeScalar) -> UInt8? {
        escapes.contains(scalar.value) ? UInt8(scalar.value & 0xFF) : nil
    }

    /// The text of a path. Different bytes have different texts.
    package static func text(_ bytes: [UInt8]) -> String {
        if let text = String(validating: bytes, as: UTF8.self), !hasEscapes(text) { return text }
        var (text, rest) = ("", bytes[...])
        var parser = Unicode.UTF8.ForwardParser()
        var iterator = bytes.makeIterator()
        while true {
            switch parser.parseScalar(from: &iterator) {
            case .valid(let encoded):
                let scalar = Unicode.UTF8.decode(encoded)
                if byte(scalar) == nil {
                    text.unicodeScalars.append(scalar)
                } else {
                    add(rest.prefix(encoded.count), &text)
                }
                rest = rest.dropFirst(encoded.count)
            case .error(let length):
                add(rest.prefix(length), &text)
                rest = rest.dropFirst(length)
            case .emptyInput: return text
            }
        }
    }

    /// The text of a path in C.
    package static func text(_ path: UnsafePointer<CChar>) -> String {
        text(Array(UnsafeRawBufferPointer(start: path, count: strlen(path))))
    }

    private static func add(_ bytes: ArraySlice<UInt8>, _ text: inout String) {
        for byte in bytes {
            if let scalar = UnicodeScalar(escapes.lowerBound - 0x80 + UInt32(byte)) {
                text.unicodeScalars.append(scalar)
            }
        }
    }

    /// Characters of that plane begin with this byte.
    private static func hasEscapes(_ text: String) -> Bool { text.utf8.contains(0xF4) }

    /// A path for people: `\xE9` for a byte that is none of a character.
    package static func shown(_ text: String) -> String {
        guard hasEscapes(text) else { return text }
        return text.unicodeScalars.reduce(into: "") { out, scalar in
            if let byte = byte(scalar) {
                out += "\\x" + String(byte, radix: 16, uppercase: true)
            } else {
                out.unicodeScalars.append(scalar)
            }
        }
    }

    /// Calls `body` with the bytes of a path.
    package static func withBytes<Result>(_ text: String, _ body: (UnsafePointer<CChar>) -> Result) -> Result {
        guard hasEscapes(text) else { return text.withCString(body) }
        var bytes: [CChar] = []
        for scalar in text.unicodeScalars {
            if let byte = byte(scalar) {
                bytes.append(CChar(bitPattern: byte))
            } else {
                bytes += Unicode.UTF8.encode(scalar).map { $0.map(CChar.init(bitPattern:)) } ?? []
            }
        }
        return (bytes + [0]).withUnsafeBufferPointer { buffer in buffer.baseAddress.map(body) ?? text.withCString(body)
        }
    }

    /// stat(2); nil with `errno`.
    package static func status(_ path: String) -> stat? {
        var status = stat()
        return withBytes(path) { stat($0, &status) } == 0 ? status : nil
    }

    /// realpath(3); nil with `errno`.
    package static func resolved(_ path: String) -> String? {
        guard let resolved = withBytes(path, { realpath($0, nil) }) else { return nil }
        defer { free(resolved) }
        return text(resolved)
    }

    /// The words of a command line, from its bytes.
    package static func words(_ argv: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>, _ count: Int32) -> [String] {
        (0..<Int(count)).compactMap { argv[$0].map { text(UnsafePointer($0)) } }
    }
}
