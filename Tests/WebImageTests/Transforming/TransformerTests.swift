import Testing

@testable import WebImage

@Suite("Transformers", .timeLimit(.minutes(5)))
struct TransformerTests {
    @Test("keys name every parameter")
    func keys() throws {
        let color = ImageColor(red: 1, green: 2, blue: 255)
        let transformers: [any ImageTransformer] = [
            try ImageResizingTransformer(width: 256, height: 128),
            try ImageResizingTransformer(width: 256, height: 128, fit: .cover, scalesUp: true),
            try ImageResizingTransformer(width: 1, height: 2, fit: .pad),
            try ImageResizingTransformer(width: 1, height: 2, fit: .pad, scalesUp: true, background: color),
            try ImageCroppingTransformer(x: -5, y: 10, width: 20, height: 30),
            ImageFlippingTransformer(horizontal: true, vertical: false),
            try ImageRotationTransformer(angle: -.pi / 4, fitsSize: true),
            ImagePipelineTransformer(transformers: []),
            ImagePipelineTransformer(transformers: [
                ImageFlippingTransformer(horizontal: false, vertical: true),
                ImageFlippingTransformer(horizontal: true, vertical: false),
            ]),
        ]
        #expect(
            transformers.map(\.transformerKey) == [
                "ImageResizingTransformer({256.000000,128.000000},inside)",
                "ImageResizingTransformer({256.000000,128.000000},cover,up)",
                "ImageResizingTransformer({1.000000,2.000000},pad)",
                "ImageResizingTransformer({1.000000,2.000000},pad,#ff0102ff,up)",
                "ImageCroppingTransformer({-5.000000,10.000000,20.000000,30.000000})",
                "ImageFlippingTransformer(1,0)", "ImageRotationTransformer(-0.785398,1)", "",
                "ImageFlippingTransformer(0,1)-ImageFlippingTransformer(1,0)",
            ])
    }

    @Test("parameters out of range are refused")
    func refused() {
        let calls: [() throws -> Void] = [
            { _ = try ImageResizingTransformer(width: 0, height: 1) },
            { _ = try ImageResizingTransformer(width: 1, height: 32_769) },
            { _ = try ImageCroppingTransformer(x: 0, y: 0, width: 0, height: 1) },
            { _ = try ImageCroppingTransformer(x: .max, y: 0, width: 1, height: 1) },
            { _ = try ImageRotationTransformer(angle: .nan, fitsSize: true) },
            { _ = try ImageRotationTransformer(angle: .infinity, fitsSize: true) },
        ]
        for call in calls {
            #expect { try call() } throws: { ($0 as? WebImageError)?.code == .invalidConfiguration }
        }
    }

    @Test("an image that has the size already is the same image; cuts without scaling copy pixels")
    func copies() throws {
        let image = try Pictures.places(40, 30)
        #expect(try ImageResizingTransformer(width: 40, height: 40).transformedImage(with: image, for: "") == image)
        let cut = try ImageResizingTransformer(width: 20, height: 100, fit: .cover).transformedImage(
            with: image, for: "")
        #expect(cut.size == PixelSize(width: 20, height: 30))
        #expect(cut.pixel(0, 0) == [10, 0, 7] && cut.pixel(19, 29) == [29, 29, 7])
    }

    @Test("pad: white around images without alpha, transparent around others, or the given colour")
    func pad() throws {
        let image = try Pictures.places(4, 2)
        let white = try ImageResizingTransformer(width: 6, height: 5, fit: .pad).transformedImage(with: image, for: "")
        #expect(white.size == PixelSize(width: 6, height: 5) && !white.hasAlpha)
        #expect(white.pixel(0, 0) == [255, 255, 255] && white.pixel(5, 4) == [255, 255, 255])
        #expect(
            white.pixel(1, 1) == [0, 0, 7] && white.pixel(4, 2) == [3, 1, 7] && white.pixel(1, 3) == [255, 255, 255])
        let alpha = try ImageResizingTransformer(width: 6, height: 5, fit: .pad).transformedImage(
            with: Pictures.places(4, 2, hasAlpha: true), for: "")
        #expect(alpha.pixel(0, 0) == [0, 0, 0, 0] && alpha.pixel(4, 2) == [3, 1, 7, 251])
        let color = ImageColor(red: 9, green: 8, blue: 7, alpha: 6)
        let colored = try ImageResizingTransformer(width: 6, height: 5, fit: .pad, background: color)
            .transformedImage(with: image, for: "")
        #expect(colored.hasAlpha && colored.pixel(0, 0) == [9, 8, 7, 6] && colored.pixel(1, 1) == [0, 0, 7, 255])
    }

    @Test("quarter turns and mirrors move pixels without changing them")
    func turns() throws {
        for hasAlpha in [false, true] {
            let image = try Pictures.places(5, 3, hasAlpha: hasAlpha)
            func turned(_ quarters: Int, fits: Bool = true) throws -> Bitmap {
                try ImageRotationTransformer(angle: Double(quarters) * .pi / 2, fitsSize: fits)
                    .transformedImage(with: image, for: "")
            }
            let left = try turned(1)
            #expect(left.size == PixelSize(width: 3, height: 5))
            for y in 0..<5 { for x in 0..<3 { #expect(left.pixel(x, y) == image.pixel(4 - y, x)) } }
            let half = try turned(2)
            for y in 0..<3 { for x in 0..<5 { #expect(half.pixel(x, y) == image.pixel(4 - x, 2 - y)) } }
            let right = try turned(3)
            for y in 0..<5 { for x in 0..<3 { #expect(right.pixel(x, y) == image.pixel(y, 2 - x)) } }
            #expect(try turned(0) == image)
            #expect(try turned(4) == image)
            #expect(try turned(-1) == right)
            #expect(try turned(2, fits: false) == half)
            let both = ImageFlippingTransformer(horizontal: true, vertical: true)
            #expect(try both.transformedImage(with: image, for: "") == half)
            let mirror = try ImageFlippingTransformer(horizontal: true, vertical: false)
                .transformedImage(with: image, for: "")
            let upsideDown = try ImageFlippingTransformer(horizontal: false, vertical: true)
                .transformedImage(with: image, for: "")
            for y in 0..<3 {
                for x in 0..<5 {
                    #expect(mirror.pixel(x, y) == image.pixel(4 - x, y))
                    #expect(upsideDown.pixel(x, y) == image.pixel(x, 2 - y))
                }
            }
            // The corners that are cut off, and those that are not covered.
            let kept = try turned(1, fits: false)
            #expect(kept.size == image.size && kept.hasAlpha)
            #expect(kept.pixel(0, 0)[3] == 0 && kept.pixel(4, 2)[3] == 0)
            #expect(kept.pixel(2, 1).prefix(3) == image.pixel(2, 1).prefix(3))
        }
    }

    @Test("other angles: the middle stays, corners are transparent, edges are smooth and not tinted")
    func anyAngle() throws {
        let image = try Pictures.drawn(61, 41) { _, _ in [200, 100, 50] }
        let turned = try ImageRotationTransformer(angle: 0.3, fitsSize: true).transformedImage(with: image, for: "")
        #expect(turned.hasAlpha && turned.size == PixelSize(width: 71, height: 58))
        #expect(turned.pixel(0, 0) == [0, 0, 0, 0] && turned.pixel(70, 57) == [0, 0, 0, 0])
        #expect(turned.pixel(35, 29) == [200, 100, 50, 255])
        var area = 0
        for y in 0..<58 {
            for x in 0..<71 {
                let pixel = turned.pixel(x, y)
                area += Int(pixel[3])
                if pixel[3] > 64 { #expect(pixel[0] == 200 && pixel[1] == 100 && pixel[2] == 50) }
            }
        }
        #expect(abs(Double(area) / 255 - 61 * 41) < 15)
        let full = try ImageRotationTransformer(angle: 2 * .pi + 0.3, fitsSize: true).transformedImage(
            with: image, for: "")
        #expect(full.difference(from: turned) <= 1)
    }

    @Test("a crop is cut to the image, and refused outside")
    func crop() throws {
        let image = try Pictures.places(20, 10)
        let corner = try ImageCroppingTransformer(x: 15, y: -3, width: 100, height: 8).transformedImage(
            with: image, for: "")
        #expect(corner.size == PixelSize(width: 5, height: 5) && corner.pixel(0, 0) == [15, 0, 7])
        #expect(throws: WebImageError.self) {
            try ImageCroppingTransformer(x: 20, y: 0, width: 1, height: 1).transformedImage(with: image, for: "")
        }
    }

    @Test("keys of transformed images beyond SDWebImage's vectors")
    func transformedKeys() {
        let vectors = [
            ("https://x/a.png", "https://x/a-flip.png"), ("https://example.org", "https://example.org-flip"),
            ("https://example.org/", "https://example.org/-flip"),
            ("https://example.org?a=b.png", "https://example.org?a=b.png-flip"),
            ("https://x/a.b/c", "https://x/a.b/c-flip"), ("https://x/a.tar.gz#x/y.z", "https://x/a.tar-flip.gz#x/y.z"),
            ("", "-flip"), ("日本.jpg", "日本-flip.jpg"),
        ]
        for (key, expected) in vectors { #expect(TransformedKey.key(key, transformerKey: "flip") == expected) }
        #expect(TransformedKey.key("a.png", transformerKey: "") == "a.png")
    }
}
