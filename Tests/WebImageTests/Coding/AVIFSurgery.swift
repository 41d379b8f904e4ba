/// Cuts AVIF files open and puts them together again.
enum AVIFSurgery {
    static func box(_ name: String, _ content: [UInt8]) -> [UInt8] {
        ChunkSurgery.bigEndian(content.count + 8) + name.utf8 + content
    }

    /// The boxes in some bytes, with their headers.
    static func boxes(_ bytes: ArraySlice<UInt8>) -> [(name: String, bytes: [UInt8])] {
        var (found, rest) = ([(name: String, bytes: [UInt8])](), bytes)
        while rest.count >= 8 {
            let count = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
            found.append((String(decoding: rest.dropFirst(4).prefix(4), as: UTF8.self), Array(rest.prefix(count))))
            rest = rest.dropFirst(count)
        }
        return found
    }

    /// What is put into a still image of one item, which is shown as before.
    struct Additions {
        /// Items without data.
        var items = 0
        /// Properties that no item has.
        var properties = 0
        /// Properties that the item has.
        var own: [[UInt8]] = []
        /// Boxes that mean nothing, in the box that describes the image.
        var padding = 0
        /// How many times the one frame is there.
        var frames = 1
        /// Items that the first one refers to.
        var references = 0
        /// Parts without bytes in front of the item's data.
        var parts = 0
    }

    /// The sample, whose item has one frame behind a sequence header, and four properties.
    static func still(_ added: Additions) -> [UInt8] {
        let file = boxes(HexSamples.avif[...])
        let frame = Array(HexSamples.avif[ChunkSurgery.offset(of: [0x32, 0x66], in: HexSamples.avif)...])
        let data = Array(file[2].bytes.dropFirst(8)) + (1..<max(1, added.frames)).flatMap { _ in frame }
        // The offset of the data is the same in both rounds, whatever its value.
        let length = meta(file[1].bytes, added, offset: 0, data.count).count
        let offset = file[0].bytes.count + length + 8
        return file[0].bytes + meta(file[1].bytes, added, offset: offset, data.count) + box("mdat", data)
    }

    private static func meta(_ old: [UInt8], _ added: Additions, offset: Int, _ count: Int) -> [UInt8] {
        let number = ChunkSurgery.bigEndian
        var content = Array(old[8..<12])
        for child in boxes(old[12...]) {
            switch child.name {
            case "iloc":
                let parts = [UInt8](repeating: 0, count: 8 * added.parts) + number(offset) + number(count)
                let first = number(1) + [0, 0, 0, 0] + number(added.parts + 1).suffix(2) + parts
                let others = (0..<added.items).flatMap { number(100 + $0) + [UInt8](repeating: 0, count: 6) }
                content += box("iloc", [2, 0, 0, 0, 0x44, 0] + number(added.items + 1) + first + others)
            case "iprp":
                let inside = boxes(child.bytes[8...])
                let more = added.own.flatMap { $0 } + (0..<added.properties).flatMap { _ in box("xxxx", []) }
                let indices = [1, 2, 0x83, 4] + (0..<added.own.count).map { UInt8(0x85 + $0) }
                let association = [0, 0, 0, 0] + number(1) + [0, 1, UInt8(indices.count)] + indices
                content += box("iprp", box("ipco", inside[0].bytes.dropFirst(8) + more) + box("ipma", association))
            default: content += child.bytes
            }
        }
        if added.references > 0 {
            let to = (0..<added.references).flatMap { number(2 + $0).suffix(2) }
            content += box("iref", [0, 0, 0, 0] + box("cdsc", [0, 1] + number(added.references).suffix(2) + to))
        }
        if added.padding > 0 { content += box("free", [UInt8](repeating: 0, count: added.padding)) }
        return box("meta", content)
    }
}
