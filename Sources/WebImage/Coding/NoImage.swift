enum NoImage {
    private static let longestQuote = 40

    /// `badImageData`, for example `text/html, starts with "<!DOCTYPE html>"`.
    static func error(_ bytes: UnsafeRawBufferPointer) -> WebImageError {
        let type = mimeType(bytes)
        var error = WebImageError(.badImageData, "\(type), starts with \"\(quote(bytes))\"")
        if type == "application/json" || type.startsWithBytes(of: "text/") { error.page = PageMark(bytes) }
        return error
    }

    /// By the signatures of the WHATWG's "MIME Sniffing", sections 6 and 7, as far as a few bytes suffice.
    private static func mimeType(_ bytes: UnsafeRawBufferPointer) -> String {
        if bytes.starts(with: "%PDF-".utf8) { return "application/pdf" }
        if bytes.starts(with: [0x1F, 0x8B]) { return "application/gzip" }
        if bytes.starts(with: [0x50, 0x4B, 0x03, 0x04]) { return "application/zip" }
        if bytes.dropFirst(4).starts(with: "ftyp".utf8) { return "video/mp4" }
        // "Binary data bytes", section 3.
        let isBinary = bytes.prefix(512).contains { $0 < 0x09 || $0 == 0x0B || ($0 > 0x0D && $0 < 0x20 && $0 != 0x1B) }
        if isBinary { return "application/octet-stream" }
        let text = bytes.drop { $0 == 0x20 || (0x09...0x0D).contains($0) || $0 == 0xEF || $0 == 0xBB || $0 == 0xBF }
        if text.starts(with: "<?xml".utf8) { return "text/xml" }
        switch text.first {
        case UInt8(ascii: "<"): return "text/html"
        case UInt8(ascii: "{"), UInt8(ascii: "["): return "application/json"
        default: return "text/plain"
        }
    }

    /// Escapes everything except printable ASCII as `\xNN`: server bytes must not reach a terminal.
    private static func quote(_ bytes: UnsafeRawBufferPointer) -> String {
        var text = ""
        for byte in bytes.prefix(longestQuote) {
            let isPlain = byte >= 0x20 && byte < 0x7F && byte != UInt8(ascii: "\\") && byte != UInt8(ascii: "\"")
            let digits = String(byte, radix: 16)
            let next = isPlain ? String(UnicodeScalar(byte)) : "\\x" + (digits.count == 1 ? "0" : "") + digits
            if text.utf8.count + next.utf8.count > longestQuote { break }
            text += next
        }
        return text
    }
}
