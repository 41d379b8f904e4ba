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

    /// Whether there is a control character: what no URL has.
    var hasControl: Bool { withUnsafeBytes { $0.contains { $0 < 0x20 || $0 == 0x7F } } }
}

extension UnsafeBufferPointer<UInt8> {
    private static var ones: UInt64 { 0x0101_0101_0101_0101 }
    private static var tops: UInt64 { 0x8080_8080_8080_8080 }

    private func eight(at place: Int) -> UInt64 {
        UInt64(littleEndian: UnsafeRawPointer(baseAddress! + place).loadUnaligned(as: UInt64.self))
    }

    /// How often a byte is there.
    func count(of byte: UInt8) -> Int {
        var count = 0
        // Without a check of each sum, so that it is done for many bytes at once.
        for other in self { count &+= other == byte ? 1 : 0 }
        return count
    }

    /// The first place of one of two bytes from `start` on; `count` if there is none.
    func place(of first: UInt8, or second: UInt8, from start: Int) -> Int {
        precondition(start >= 0)
        let (firsts, seconds) = (Self.ones &* UInt64(first), Self.ones &* UInt64(second))
        var place = start
        while place + 8 <= count {
            let bytes = eight(at: place)
            let (one, other) = (bytes ^ firsts, bytes ^ seconds)
            let found = ((one &- Self.ones) & ~one | (other &- Self.ones) & ~other) & Self.tops
            if found != 0 { return place + found.trailingZeroBitCount / 8 }
            place += 8
        }
        while place < count, self[place] != first, self[place] != second { place += 1 }
        return place
    }

    /// The first place from `start` on of what JSON has no other way in a string: a quote, a backslash or a control character; `end` if there is none.
    func endOfText(from start: Int, to end: Int) -> Int {
        precondition(start >= 0 && end <= count)
        let (ones, tops) = (Self.ones, Self.tops)
        var place = start
        // Eight bytes at once: the topmost bit of each that is meant. A borrow reaches only bytes behind the first one.
        while place + 8 <= end {
            let bytes = eight(at: place)
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
