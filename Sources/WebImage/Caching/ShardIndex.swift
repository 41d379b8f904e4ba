internal import CLinux
internal import Glibc

/// Where the images of a shard are in its archive: the hidden file `.00012-1A2B3C4D.index` beside `00012.tar`, named by what no copy of the
/// archive has (`clinux_stat_file`). It has a header of 16 bytes, and 104 for each line of the shard: the place of its image in the archive as a
/// little-endian number, 0 without one; its ``CacheRecord``; the SHA-256 of what was fetched, or 0.
package struct ShardIndex: Sendable {
    package struct Slot: Sendable, Equatable {
        package let key: CacheKey
        package let offset: Int
        package let record: CacheRecord
        /// Of what the image was made of; nil if it is what was fetched.
        package let contentDigest: Digest?

        package init(_ key: CacheKey, offset: Int, _ record: CacheRecord, contentDigest: Digest?) {
            (self.key, self.offset, self.record, self.contentDigest) = (key, offset, record, contentDigest)
        }
    }

    static let headerSize = 16
    static let slotSize = 8 + CacheRecord.encodedLength + 32
    private static let mark = Array("prefetch-shard1".utf8)
    /// The last byte of the header: whether the cache has links in the place of all these images.
    private static let open = UInt8(ascii: "-"), replaced = UInt8(ascii: "+")

    /// By the place of their lines in the shard.
    package var slots: [Int: Slot] = [:]
    /// Whether the cache has links in the place of all these images.
    package var isReplaced = false

    package init() {}

    /// What the file is called.
    /// * `shard`: the name of the archive, without its ending; `file`: what no copy of it has.
    package static func name(_ shard: String, file: UInt32) -> String {
        let digits = String(file, radix: 16)
        return "\(prefix(shard))\(String(repeating: "0", count: 8 - digits.count))\(digits)\(suffix)"
    }

    static func prefix(_ shard: String) -> String { ".\(shard)-" }
    static let suffix = ".index"

    /// Whether a name is that of an index of a shard.
    package static func isName(_ name: String, of shard: String) -> Bool {
        name.hasPrefix(prefix(shard)) && name.hasSuffix(suffix)
    }

    /// The file.
    /// * `count`: lines of the shard; `file`: what no copy of the archive has.
    package func bytes(count: Int, file: UInt32) -> [UInt8] {
        var bytes = Self.mark + [isReplaced ? Self.replaced : Self.open]
        bytes.reserveCapacity(Self.headerSize + count * Self.slotSize)
        for place in 0..<count {
            guard let slot = slots[place] else {
                bytes += repeatElement(0, count: Self.slotSize)
                continue
            }
            for shift in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: slot.offset >> (8 * shift))) }
            bytes += slot.record.encoded(for: slot.key, file: file)
            bytes += slot.contentDigest?.bytes ?? [UInt8](repeating: 0, count: 32)
        }
        return bytes
    }

    /// What no copy of a file has; nil with `errno`.
    package static func identity(of descriptor: Int32) -> UInt32? {
        var status = stat()
        var identity: UInt32 = 0
        return clinux_stat_file(descriptor, &status, &identity) == 0 ? identity : nil
    }

    /// Whether it says that the cache has links in the place of all its images.
    package static func isReplaced(_ descriptor: Int32) -> Bool {
        OpenFile.read(descriptor, at: headerSize - 1, limit: 1) == [replaced]
    }

    /// A slot, as it is read.
    struct Read {
        let offset: Int
        /// Of the record.
        let bytes: [UInt8]
        let record: CacheRecord
        let contentDigest: Digest?
    }

    /// Nil if there is none at a place, or the file is none of these.
    static func read(_ descriptor: Int32, at place: Int) -> Read? {
        guard OpenFile.read(descriptor, at: 0, limit: headerSize)?.dropLast().elementsEqual(mark) == true,
            let bytes = OpenFile.read(descriptor, at: headerSize + place * slotSize, limit: slotSize),
            bytes.count == slotSize
        else { return nil }
        let offset = bytes[..<8].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        let own = Array(bytes[8..<(8 + CacheRecord.encodedLength)])
        guard offset > 0, offset < UInt64(Int32.max) << 16, let record = CacheRecord(own) else { return nil }
        let digest = bytes[(8 + CacheRecord.encodedLength)...]
        return Read(
            offset: Int(offset), bytes: own, record: record,
            contentDigest: digest.allSatisfy { $0 == 0 } ? nil : Digest(digest))
    }
}
