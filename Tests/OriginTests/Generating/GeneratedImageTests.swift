import Origin
import Testing

@Suite(.timeLimit(.minutes(5)))
struct GeneratedImageTests {
    private static let signatures: [GeneratedImage.Kind: [UInt8]] = [
        .jpeg: [0xFF, 0xD8, 0xFF], .progressiveJPEG: [0xFF, 0xD8, 0xFF], .png: [0x89, 0x50, 0x4E, 0x47],
        .gif: Array("GIF89a".utf8), .animatedGIF: Array("GIF89a".utf8), .webp: Array("RIFF".utf8),
    ]

    @Test(arguments: GeneratedImage.Kind.allCases, [5_000, 30_000, 200_000])
    func `an image has about the size asked for`(kind: GeneratedImage.Kind, bytes: Int) throws {
        let image = GeneratedImage.image(kind, seed: 7, approximateBytes: bytes)
        #expect(image.starts(with: try #require(Self.signatures[kind])))
        #expect(abs(image.count - bytes) < bytes / 3, "\(image.count) bytes")
    }

    @Test(arguments: GeneratedImage.Kind.allCases)
    func `a seed decides every byte`(kind: GeneratedImage.Kind) {
        let image = GeneratedImage.image(kind, seed: 1, approximateBytes: 6_000)
        #expect(image == GeneratedImage.image(kind, seed: 1, approximateBytes: 6_000))
        #expect(image != GeneratedImage.image(kind, seed: 2, approximateBytes: 6_000))
    }

    @Test
    func `arguments a format does not allow give no bytes`() {
        #expect(GeneratedImage.png(seed: 1, width: 4, height: 4, depth: 24).isEmpty)
        #expect(GeneratedImage.jpeg(seed: 1, width: 70_000, height: 1).isEmpty)
    }
}
