@testable import WebImage

extension FuzzTarget {
    private static let coder: ImageCoder = {
        var limits = ImageCoder.Limits()
        limits.maxPixels = 1 << 22
        limits.maxMemory = 64 << 20
        return ImageCoder(limits: limits)
    }()

    /// What the first bytes are, and the structure of a WebP.
    static func readImage(_ input: [UInt8]) throws {
        guard let choice = input.first else { return }
        var bytes = Array(input.dropFirst())
        // Sizes of a container that are wrong hide what is in it.
        if choice & 1 != 0, bytes.count >= 12 {
            bytes.replaceSubrange(0..<4, with: "RIFF".utf8)
            bytes.replaceSubrange(8..<12, with: "WEBP".utf8)
            for index in 0..<4 { bytes[4 + index] = UInt8(truncatingIfNeeded: (bytes.count - 8) >> (8 * index)) }
        }
        try bytes.withUnsafeBytes { bytes in
            guard let format = ImageFormat(sniffing: bytes) else { return }
            let header = try? coder.verify(bytes, level: .header)
            _ = try? coder.inspectHeader(bytes)
            guard format == .webp, let structure = try? coder.verify(bytes, level: .structure) else { return }
            guard let header else { throw Contradiction(description: "a structure without a header") }
            try claim(header.width == structure.width && header.height == structure.height, "two sizes")
            try claim(structure.width > 0 && structure.height > 0 && structure.frameCount > 0, "no pixels")
            guard let memory = try? WebPStructure(limits: coder.limits).memory(bytes, structure) else { return }
            try claim(memory.pixels > 0 && memory.check < 1 << 40, "memory of \(memory.check)")
        }
    }
}
