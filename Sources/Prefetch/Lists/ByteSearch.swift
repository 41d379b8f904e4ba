internal import Glibc

/// Searches in the bytes of lists: of these the standard library's, which take any collection, are several times as slow.
extension ArraySlice<UInt8> {
    /// The first place of a byte; nil if there is none.
    func place(of byte: UInt8) -> Int? {
        withUnsafeBytes { bytes in
            guard let first = bytes.baseAddress, let found = memchr(first, Int32(byte), bytes.count) else { return nil }
            return startIndex + (UnsafeRawPointer(found) - first)
        }
    }

    /// The last one.
    func lastPlace(of byte: UInt8) -> Int? {
        withUnsafeBytes { bytes in bytes.lastIndex(of: byte).map { startIndex + $0 } }
    }

    /// How often a byte is there.
    func count(of byte: UInt8) -> Int {
        withUnsafeBytes { bytes in
            var count = 0
            for other in bytes where other == byte { count += 1 }
            return count
        }
    }

    /// Whether there is a control character: what no URL has.
    var hasControl: Bool { withUnsafeBytes { $0.contains { $0 < 0x20 || $0 == 0x7F } } }
}

extension UnsafeBufferPointer<UInt8> {
    /// The first place from `start` on of what JSON has no other way in a string: a quote, a backslash or a control character; `end` if there is none.
    func endOfText(from start: Int, to end: Int) -> Int {
        precondition(start >= 0 && end <= count)
        let ones: UInt64 = 0x0101_0101_0101_0101
        let tops: UInt64 = 0x8080_8080_8080_8080
        var place = start
        // Eight bytes at once: the topmost bit of each that is meant. A borrow reaches only bytes behind the first one.
        while place + 8 <= end {
            let bytes = UInt64(littleEndian: UnsafeRawPointer(baseAddress! + place).loadUnaligned(as: UInt64.self))
            let quotes = bytes ^ (ones &* UInt64(UInt8(ascii: "\"")))
            let escapes = bytes ^ (ones &* UInt64(UInt8(ascii: "\\")))
            let found =
                ((bytes &- ones &* 0x20) & ~bytes | (quotes &- ones) & ~quotes | (escapes &- ones) & ~escapes) & tops
            if found != 0 { return place + found.trailingZeroBitCount / 8 }
            place += 8
        }
        while place < end, case let byte = self[place], byte >= 0x20, byte != UInt8(ascii: "\""),
            byte != UInt8(ascii: "\\")
        {
            place += 1
        }
        return place
    }
}
