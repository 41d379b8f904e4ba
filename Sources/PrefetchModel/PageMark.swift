/// What tells one page from others: a text that came where an image was to come. A portal sends the same one for every host.
package struct PageMark: Sendable, Hashable {
    /// The first bytes that count.
    private static let length = 256

    /// FNV-1a of its first bytes, without digits, and without what follows `://` to the next blank, quote or angle bracket: names of hosts,
    /// times and tokens differ from page to page.
    package var digest: UInt64
    /// Where redirects led, as `host/path`; nil without one.
    package var place: String?

    package init(digest: UInt64, place: String?) {
        (self.digest, self.place) = (digest, place)
    }

    package init(_ bytes: some Sequence<UInt8>) {
        var digest: UInt64 = 0xcbf2_9ce4_8422_2325
        // How many bytes of `://` were seen.
        var seen = 0
        for byte in bytes.prefix(Self.length) {
            if seen == 3, Self.ends.contains(byte) { seen = 0 }
            guard seen < 3, !(0x30...0x39).contains(byte) else { continue }
            digest = (digest ^ UInt64(byte)) &* 0x100_0000_01b3
            switch byte {
            case UInt8(ascii: ":"): seen = 1
            case UInt8(ascii: "/") where seen > 0: seen += 1
            default: seen = 0
            }
        }
        self.digest = digest
    }

    private static let ends: [UInt8] = [0x20, 0x0A, 0x0D, 0x09] + Array("\"'<>".utf8)
}
