import Testing

@testable import WebImage

@Suite("Writing images", .timeLimit(.minutes(5)))
struct EncodingTests {
    private let coder = ImageCoder()

    private func bitmap(_ width: Int, _ height: Int, alpha: UInt8? = nil) throws -> Bitmap {
        var pixels: [UInt8] = []
        for _ in 0..<width * height { pixels += [200, 100, 0] + (alpha.map { [$0] } ?? []) }
        return try Bitmap(width: width, height: height, hasAlpha: alpha != nil, pixels: pixels)
    }

    @Test(
        "What is written is whole, of its size and of its format", arguments: [ImageFormat.jpeg, .png, .webp],
        [nil, 0, 128, 255] as [UInt8?])
    func whole(format: ImageFormat, alpha: UInt8?) throws {
        for (width, height) in [(1, 1), (3, 500), (257, 2)] {
            let bytes = try coder.encode(try bitmap(width, height, alpha: alpha), as: format)
            let info = try coder.verify(bytes, level: .decode)
            #expect(
                info
                    == ImageInfo(
                        format: format, width: width, height: height, level: .decode,
                        hasAlpha: alpha.map { $0 < 255 || format == .png } == true && format != .jpeg, colorSpace: .rgb)
            )
        }
    }

    @Test("In a JPEG what is not opaque lies on white")
    func white() throws {
        #expect(try bitmap(1, 1, alpha: 0).opaquePixels() == [255, 255, 255])
        #expect(try bitmap(1, 1, alpha: 255).opaquePixels() == [200, 100, 0])
        #expect(try bitmap(1, 1, alpha: 51).opaquePixels() == [244, 224, 204])
        #expect(try bitmap(2, 1).opaquePixels() == [200, 100, 0, 200, 100, 0])
    }

    @Test("A lower quality takes fewer bytes")
    func quality() throws {
        var pixels: [UInt8] = []
        for index in 0..<100 * 100 * 3 { pixels.append(UInt8(truncatingIfNeeded: index &* index / 977)) }
        let noisy = try Bitmap(width: 100, height: 100, hasAlpha: false, pixels: pixels)
        let sizes = try [1, 50, 90, 100].map { try coder.encode(noisy, quality: $0).count }
        #expect(sizes == sizes.sorted() && sizes[0] < sizes[3] / 4)
    }

    @Test("What cannot be written is refused, each with its reason")
    func refusals() throws {
        let small = try bitmap(2, 2)
        for format in ImageFormat.allCases where ![.jpeg, .png, .webp].contains(format) {
            let error = #expect(throws: WebImageError.self) { try coder.encode(small, as: format) }
            #expect(error?.code == .invalidConfiguration)
        }
        for quality in [0, 101] {
            let error = #expect(throws: WebImageError.self) { try coder.encode(small, quality: quality) }
            #expect(error?.code == .invalidConfiguration)
        }
        let wide = try bitmap(65_501, 1)
        #expect(#expect(throws: WebImageError.self) { try coder.encode(wide) }?.code == .badImageData)
        #expect(throws: Never.self) { try coder.encode(wide, as: .png) }
        for (width, height, count) in [(0, 0, 0), (2, 2, 11), (2, 2, 16), (-1, -1, 3), (Int.max, 3, 3)] {
            let pixels = [UInt8](repeating: 0, count: count)
            let error = #expect(throws: WebImageError.self) {
                try Bitmap(width: width, height: height, hasAlpha: false, pixels: pixels)
            }
            #expect(error?.code == .badImageData)
        }
    }
}
