import Testing

@testable import WebImage

/// SDWebImage 5.21's tests of its transformers. Its picture of 300 x 300 pixels is drawn here: a black ring on a transparent ground. Those of
/// rounded corners, tint, blur and filters have no counterpart.
@Suite("Ported SDImageTransformerTests", .timeLimit(.minutes(5)))
struct PortedTransformerTests {
    private static let black: [UInt8] = [0, 0, 0, 255]
    private let image: Bitmap

    init() throws {
        image = try Pictures.drawn(300, 300, hasAlpha: true) { x, y in
            let (across, down) = (x - 150, y - 150)
            let distance = across * across + down * down
            return distance < 140 * 140 && distance > 60 * 60 ? Self.black : [0, 0, 0, 0]
        }
    }

    @Test("SDImageTransformerTests 01 UIImageTransformResize")
    func resize() throws {
        let down = try ImageResizingTransformer(width: 200, height: 100, fit: .pad)
            .transformedImage(with: image, for: "Test")
        #expect(down.size == PixelSize(width: 200, height: 100))
        let up = try ImageResizingTransformer(width: 2000, height: 1000, fit: .pad, scalesUp: true)
            .transformedImage(with: image, for: "Test")
        #expect(up.size == PixelSize(width: 2000, height: 1000))
        #expect(up.pixel(1000, 50) == Self.black)
    }

    @Test("SDImageTransformerTests 02 UIImageTransformCrop")
    func crop() throws {
        let cropped = try ImageCroppingTransformer(x: 50, y: 10, width: 200, height: 200)
            .transformedImage(with: image, for: "Test")
        #expect(cropped.size == PixelSize(width: 200, height: 200))
        #expect(cropped.pixel(0, 0) == [0, 0, 0, 0])
        #expect(cropped.pixel(100, 10) == Self.black)
    }

    @Test("SDImageTransformerTests 04 UIImageTransformRotate")
    func rotate() throws {
        let kept = try ImageRotationTransformer(angle: .pi / 4, fitsSize: false).transformedImage(
            with: image, for: "Test")
        #expect(kept.size == image.size)
        let fitted = try ImageRotationTransformer(angle: .pi / 4, fitsSize: true)
            .transformedImage(with: image, for: "Test")
        // 300 times the square root of 2.
        #expect(fitted.size == PixelSize(width: 425, height: 425))
        #expect(fitted.pixel(100, 212) == Self.black)
    }

    @Test("SDImageTransformerTests 05 UIImageTransformFlip")
    func flip() throws {
        let flipped = try ImageFlippingTransformer(horizontal: true, vertical: true)
            .transformedImage(with: image, for: "Test")
        #expect(flipped.size == image.size)
        for y in 75..<85 { for x in 75..<85 { #expect(flipped.pixel(x, y) == flipped.pixel(75, 75)) } }
        #expect(flipped.pixel(150, 285) == Self.black)
    }

    @Test("SDImageTransformerTests 09 ImagePipelineTransformer")
    func pipeline() throws {
        let transformer = ImagePipelineTransformer(transformers: [
            try ImageResizingTransformer(width: 100, height: 100, fit: .cover),
            try ImageRotationTransformer(angle: .pi / 4, fitsSize: false),
            ImageFlippingTransformer(horizontal: true, vertical: true),
            try ImageCroppingTransformer(x: 0, y: 0, width: 50, height: 50),
        ])
        let keys = [
            "ImageResizingTransformer({100.000000,100.000000},cover)", "ImageRotationTransformer(0.785398,0)",
            "ImageFlippingTransformer(1,1)",
            "ImageCroppingTransformer({0.000000,0.000000,50.000000,50.000000})",
        ]
        #expect(transformer.transformerKey == keys.joined(separator: "-"))
        #expect(try transformer.transformedImage(with: image, for: "Test").size == PixelSize(width: 50, height: 50))
    }

    @Test("SDImageTransformerTests 10 TransformerKeyForCacheKey")
    func transformerKeyForCacheKey() {
        let vectors = [
            ("image.png", "image-SDImageFlippingTransformer(1,0).png"),
            ("image", "image-SDImageFlippingTransformer(1,0)"),
            (".image", ".image-SDImageFlippingTransformer(1,0)"),
            ("image.", "image.-SDImageFlippingTransformer(1,0)"),
            ("Test/image.png", "Test/image-SDImageFlippingTransformer(1,0).png"),
            ("http://foo/image.png", "http://foo/image-SDImageFlippingTransformer(1,0).png"),
            ("http://foo/image", "http://foo/image-SDImageFlippingTransformer(1,0)"),
            ("http://foo/.image", "http://foo/.image-SDImageFlippingTransformer(1,0)"),
            (
                "http://foo/image.png?foo=bar#mark",
                "http://foo/image-SDImageFlippingTransformer(1,0).png?foo=bar#mark"
            ),
            (
                "ftp://root:password@foo.com/image.png",
                "ftp://root:password@foo.com/image-SDImageFlippingTransformer(1,0).png"
            ),
        ]
        for (key, expected) in vectors {
            #expect(TransformedKey.key(key, transformerKey: "SDImageFlippingTransformer(1,0)") == expected)
        }
    }
}
