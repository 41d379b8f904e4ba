import Testing

@testable import WebImage

@Suite("Sizes of resized images", .timeLimit(.minutes(5)))
struct ImageSizingTests {
    struct Case: CustomTestStringConvertible {
        let image: (Int, Int)
        let target: (Int, Int)
        let fit: ImageFit
        let up: Bool
        let scaled: (Int, Int)
        let canvas: (Int, Int)
        let box: (Double, Double, Double, Double)
        var testDescription: String { "\(image) to \(target), \(fit)\(up ? ", up" : "")" }
    }

    static let cases = [
        Case(
            image: (400, 300), target: (100, 100), fit: .inside, up: false, scaled: (100, 75), canvas: (100, 75),
            box: (0, 0, 400, 300)),
        Case(
            image: (40, 30), target: (100, 100), fit: .inside, up: false, scaled: (40, 30), canvas: (40, 30),
            box: (0, 0, 40, 30)),
        Case(
            image: (40, 30), target: (100, 100), fit: .inside, up: true, scaled: (100, 75), canvas: (100, 75),
            box: (0, 0, 40, 30)),
        Case(
            image: (10_000, 1), target: (100, 100), fit: .inside, up: false, scaled: (100, 1), canvas: (100, 1),
            box: (0, 0, 10_000, 1)),
        Case(
            image: (400, 300), target: (100, 100), fit: .shorter, up: false, scaled: (133, 100), canvas: (133, 100),
            box: (0, 0, 400, 300)),
        Case(
            image: (30, 40), target: (100, 100), fit: .shorter, up: false, scaled: (30, 40), canvas: (30, 40),
            box: (0, 0, 30, 40)),
        Case(
            image: (30, 40), target: (120, 90), fit: .shorter, up: true, scaled: (90, 120), canvas: (90, 120),
            box: (0, 0, 30, 40)),
        Case(
            image: (400, 300), target: (100, 100), fit: .cover, up: false, scaled: (100, 100), canvas: (100, 100),
            box: (50, 0, 350, 300)),
        Case(
            image: (300, 401), target: (100, 100), fit: .cover, up: false, scaled: (100, 100), canvas: (100, 100),
            box: (0, 50.5, 300, 350.5)),
        // One side is too short to cover: it stays, and the other one is cut.
        Case(
            image: (400, 31), target: (100, 100), fit: .cover, up: false, scaled: (100, 31), canvas: (100, 31),
            box: (150, 0, 250, 31)),
        Case(
            image: (40, 30), target: (100, 100), fit: .cover, up: true, scaled: (100, 100), canvas: (100, 100),
            box: (5, 0, 35, 30)),
        Case(
            image: (400, 300), target: (100, 100), fit: .pad, up: false, scaled: (100, 75), canvas: (100, 100),
            box: (0, 0, 400, 300)),
        Case(
            image: (40, 30), target: (100, 100), fit: .pad, up: false, scaled: (40, 30), canvas: (100, 100),
            box: (0, 0, 40, 30)),
        Case(
            image: (40, 30), target: (100, 100), fit: .pad, up: true, scaled: (100, 75), canvas: (100, 100),
            box: (0, 0, 40, 30)),
    ]

    @Test("size, cut and canvas", arguments: cases)
    func sizes(_ test: Case) {
        let sizing = ImageSizing(
            PixelSize(width: test.image.0, height: test.image.1),
            to: PixelSize(width: test.target.0, height: test.target.1), fit: test.fit, scalesUp: test.up)
        #expect((sizing.scaled.width, sizing.scaled.height) == test.scaled)
        #expect((sizing.canvas.width, sizing.canvas.height) == test.canvas)
        #expect((sizing.left, sizing.top, sizing.right, sizing.bottom) == test.box)
    }

    @Test("for sizes of every kind the part lies in the image and has the result's proportions")
    func everySize() {
        for image in [(1, 1), (1, 900), (900, 1), (333, 777), (777, 333), (255, 257), (32_768, 3)] {
            for target in [(1, 1), (256, 256), (17, 400), (400, 17), (1, 1000)] {
                for fit in ImageFit.allCases {
                    for up in [false, true] {
                        let sizing = ImageSizing(
                            PixelSize(width: image.0, height: image.1),
                            to: PixelSize(width: target.0, height: target.1), fit: fit, scalesUp: up)
                        let (width, height) = (sizing.right - sizing.left, sizing.bottom - sizing.top)
                        #expect(sizing.left >= 0 && sizing.right <= Double(image.0) && width > 0, "\(image) \(target)")
                        #expect(sizing.top >= 0 && sizing.bottom <= Double(image.1) && height > 0)
                        let scaled = sizing.scaled
                        if fit == .shorter {
                            let least = min(target.0, target.1)
                            #expect(
                                up
                                    ? min(scaled.width, scaled.height) == least
                                    : min(scaled.width, scaled.height) <= least)
                        } else {
                            #expect(1...target.0 ~= scaled.width && 1...target.1 ~= scaled.height)
                        }
                        #expect(up || sizing.scaled.width <= image.0 && sizing.scaled.height <= image.1)
                        #expect(fit != .pad || (sizing.canvas.width, sizing.canvas.height) == target)
                        #expect(fit != .cover || !up || (sizing.scaled.width, sizing.scaled.height) == target)
                        // Rounding moves an edge by half a pixel of the result.
                        let (across, down) = (
                            Double(sizing.scaled.width) / width, Double(sizing.scaled.height) / height
                        )
                        let slack =
                            0.51 * max(across / Double(sizing.scaled.width), down / Double(sizing.scaled.height))
                        #expect(
                            abs(across - down) <= slack || sizing.scaled.width == 1 || sizing.scaled.height == 1,
                            "\(image) \(target) \(fit) \(up): \(sizing)")
                    }
                }
            }
        }
    }

    @Test("a thumbnail of a JPEG, of whose reduced form the last pixels lie partly outside of it, is not stretched")
    func thumbnail() throws {
        // 129 pixels are 17 at 1/8, of which the last one holds one pixel of the image.
        let picture = try Pictures.drawn(129, 129) { x, y in [UInt8(x * 255 / 128), UInt8(y * 255 / 128), 100] }
        let coder = ImageCoder()
        let jpeg = try coder.encode(picture, as: .jpeg, quality: 100)
        var options = ImageDecodeOptions()
        options.thumbnailPixelSize = PixelSize(width: 10, height: 10)
        let exact = try picture.scaled(to: PixelSize(width: 10, height: 10))
        #expect(try coder.decode(jpeg, options: options).difference(from: exact) <= 4)
    }

    @Test("A JPEG decoded at 1/2, 1/4 or 1/8 has its last row and column in part")
    func mapped() throws {
        let image = PixelSize(width: 801, height: 602)
        let whole = ImageSizing(image, exactly: PixelSize(width: 80, height: 60))
        func box(_ bitmap: (Int, Int)) -> [Double] {
            let mapped = whole.mapped(from: image, to: PixelSize(width: bitmap.0, height: bitmap.1))
            return [mapped.left, mapped.top, mapped.right, mapped.bottom]
        }
        #expect(box((801, 602)) == [0, 0, 801, 602])
        #expect(box((401, 301)) == [0, 0, 400.5, 301])
        #expect(box((201, 151)) == [0, 0, 200.25, 150.5])
        #expect(box((101, 76)) == [0, 0, 100.125, 75.25])
        #expect(box((400, 300)) == [0, 0, 400, 300], "no reduction of JPEG")
    }

    @Test("the part that is seen upright is found in the file", arguments: ImageOrientation.allCases)
    func stored(orientation: ImageOrientation) throws {
        // Each pixel of the file has its place in it; what is seen is its third row and second column from the top left.
        let (width, height) = orientation.swapsSides ? (5, 4) : (4, 5)
        var file = try Bitmap(
            width: width, height: height, hasAlpha: false, pixels: (0..<20).flatMap { [UInt8($0), 0, 0] })
        file.orientation = orientation
        var sizing = ImageSizing(PixelSize(width: 4, height: 5), exactly: PixelSize(width: 1, height: 1))
        (sizing.left, sizing.top, sizing.right, sizing.bottom) = (1, 2, 2, 3)
        let stored = sizing.stored(PixelSize(width: 4, height: 5), orientation)
        #expect((stored.right - stored.left, stored.bottom - stored.top) == (1, 1))
        #expect(Int(stored.left) + Int(stored.top) * width == Int(file.upright.pixel(1, 2)[0]))
    }
}
