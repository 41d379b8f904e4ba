import Testing

@testable import WebImage

/// SDWebImage 5.21's test of the sizes that its coders scale to.
@Suite("Ported SDImageCoderTests: sizes", .timeLimit(.minutes(5)))
struct PortedCoderSizeTests {
    struct Vector {
        let image: (Int, Int)
        let target: (Int, Int)
        let keepsRatio: Bool
        let up: Bool
        let expected: (Int, Int)
    }

    @Test("SDImageCoderTests 24 ThatScaleSizeCalculation")
    func scaleSizeCalculation() {
        let vectors = [
            Vector(image: (100, 200), target: (150, 150), keepsRatio: true, up: false, expected: (75, 150)),
            Vector(image: (100, 200), target: (150, 150), keepsRatio: true, up: true, expected: (75, 150)),
            Vector(image: (100, 200), target: (300, 300), keepsRatio: true, up: false, expected: (100, 200)),
            Vector(image: (100, 200), target: (300, 300), keepsRatio: true, up: true, expected: (150, 300)),
            Vector(image: (100, 200), target: (150, 150), keepsRatio: false, up: false, expected: (100, 150)),
            Vector(image: (100, 200), target: (150, 150), keepsRatio: false, up: true, expected: (150, 150)),
            Vector(image: (0, 0), target: (999, 999), keepsRatio: false, up: false, expected: (0, 0)),
            Vector(image: (999, 999), target: (0, 0), keepsRatio: false, up: false, expected: (999, 999)),
            // The sizes of its tests 22 and 23.
            Vector(image: (5250, 3450), target: (400, 300), keepsRatio: true, up: false, expected: (400, 263)),
            Vector(image: (5250, 3450), target: (4000, 4000), keepsRatio: true, up: false, expected: (4000, 2629)),
        ]
        for vector in vectors {
            let size = ImageSizing.scaledSize(
                of: PixelSize(width: vector.image.0, height: vector.image.1),
                to: PixelSize(width: vector.target.0, height: vector.target.1),
                preservesAspectRatio: vector.keepsRatio, scalesUp: vector.up)
            #expect(size == PixelSize(width: vector.expected.0, height: vector.expected.1))
        }
    }
}
