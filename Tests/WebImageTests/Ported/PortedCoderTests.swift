import Origin
import TestSupport
import Testing

@testable import WebImage

/// SDWebImage 5.21's tests of its decoder. Ours tells whether an image can be decoded, and how large it is; it hands out no pixels.
@Suite("Ported SDWebImageDecoderTests", .timeLimit(.minutes(1)))
struct PortedCoderTests {
    private let coder = ImageCoder()

    @Test("SDWebImageDecoderTests 01 ThatDecodedImageWithNilImageReturnsNil")
    func nilImage() async throws {
        let error = coder.failure([], level: .decode)
        #expect(error?.code.rawValue == 1001)
        let folder = TemporaryDirectory()
        let cache = try ImageCache(directory: folder.path)
        let before = folder.contents()
        await #expect(throws: WebImageError.self) { try await cache.store([], forKey: "nil") }
        #expect(await cache.containsImage(forKey: "nil") == .none)
        #expect(folder.contents() == before)
    }

    @Test("SDWebImageDecoderTests 02 ThatDecodedImageWithImageWorksWithARegularJPGImage")
    func regularJPEG() throws {
        for progressive in [false, true] {
            let image = GeneratedImage.jpeg(seed: 2, width: 321, height: 123, progressive: progressive)
            let info = try coder.verify(image, level: .decode)
            #expect(info == ImageInfo(format: .jpeg, width: 321, height: 123, level: .decode, colorSpace: .rgb))
        }
    }

    @Test("SDWebImageDecoderTests 05 ThatDecodedImageWithImageWorksEvenWithMonochromeImage")
    func monochrome() throws {
        let image = GeneratedImage.jpeg(seed: 5, width: 217, height: 95, color: .gray)
        let info = try coder.verify(image, level: .decode)
        #expect(info == ImageInfo(format: .jpeg, width: 217, height: 95, level: .decode, colorSpace: .gray))
        // Its last rows count: without them it is no image.
        #expect(coder.failure(Array(image.dropLast(image.count / 4)), level: .decode)?.isIncompleteImage == true)
    }
}
