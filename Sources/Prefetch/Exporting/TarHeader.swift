/// A file's header in a tar archive (POSIX.1-1988 ustar), without owner and date: the same files make the same archive, byte for byte.
enum TarHeader {
    static let blockSize = 512
    /// Archives end with two blocks of zeros and are padded to tar(1)'s record of ten kilobytes.
    static let recordSize = 10_240

    /// * `name`: at most 100 bytes.
    static func bytes(_ name: String, size: Int) -> [UInt8] {
        var header = [UInt8](repeating: 0, count: blockSize)
        func put(_ text: String, at offset: Int) {
            header.replaceSubrange(offset..<(offset + text.utf8.count), with: text.utf8)
        }
        func octal(_ value: Int, digits: Int) -> String {
            let text = String(value, radix: 8)
            return String(repeating: "0", count: max(0, digits - text.count)) + text
        }
        put(String(name.prefix(100)), at: 0)
        put("0000644\0", at: 100)
        // Owner and group; then, after the size, the date.
        put("0000000\0", at: 108)
        put("0000000\0", at: 116)
        put("\(octal(size, digits: 11))\0", at: 124)
        put("00000000000\0", at: 136)
        put("        0", at: 148)
        put("ustar\0", at: 257)
        put("00", at: 263)
        put("root", at: 265)
        put("root", at: 297)
        let sum = header.reduce(0) { $0 + Int($1) }
        put("\(octal(sum, digits: 6))\0 ", at: 148)
        return header
    }

    static func padding(_ size: Int) -> [UInt8] {
        Array(repeating: 0, count: (blockSize - size % blockSize) % blockSize)
    }

    static func end(_ size: Int) -> [UInt8] {
        let least = size + 2 * blockSize
        return Array(repeating: 0, count: 2 * blockSize + (recordSize - least % recordSize) % recordSize)
    }
}
