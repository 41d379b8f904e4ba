import Glibc
import Testing

@testable import WebImage

@Suite("Resampling", .timeLimit(.minutes(5)))
struct ResamplingTests {
    struct Case: CustomTestStringConvertible {
        let from: PixelSize
        let to: PixelSize
        var box: (left: Double, top: Double, right: Double, bottom: Double)?
        var testDescription: String {
            "\(from.width)x\(from.height) to \(to.width)x\(to.height)\(box.map { " of \($0)" } ?? "")"
        }

        var sizing: ImageSizing {
            var sizing = ImageSizing(from, to: to, fit: .inside, scalesUp: true)
            (sizing.scaled, sizing.canvas) = (to, to)
            if let box { (sizing.left, sizing.top, sizing.right, sizing.bottom) = box }
            return sizing
        }
    }

    static let cases = [
        Case(from: PixelSize(width: 97, height: 61), to: PixelSize(width: 40, height: 25)),
        Case(from: PixelSize(width: 40, height: 30), to: PixelSize(width: 131, height: 98)),
        Case(from: PixelSize(width: 200, height: 3), to: PixelSize(width: 21, height: 1)),
        Case(from: PixelSize(width: 1, height: 1), to: PixelSize(width: 5, height: 7)),
        Case(from: PixelSize(width: 3, height: 200), to: PixelSize(width: 1, height: 1)),
        Case(from: PixelSize(width: 64, height: 64), to: PixelSize(width: 64, height: 64)),
        Case(
            from: PixelSize(width: 90, height: 50), to: PixelSize(width: 33, height: 33), box: (20.25, 0, 70.25, 50)),
        Case(
            from: PixelSize(width: 90, height: 50), to: PixelSize(width: 77, height: 20), box: (0.5, 10.5, 30.75, 18)),
    ]

    @Test("it is within one level of the filter's formula", arguments: cases)
    func formula(_ test: Case) throws {
        for hasAlpha in [false, true] {
            let image = try Pictures.noise(test.from.width, test.from.height, hasAlpha: hasAlpha, seed: 11)
            let sizing = test.sizing
            let ours = try Resampling(image: image, sizing: sizing).pixels()
            let exact = Reference(image, sizing).pixels
            // Unpremultiplied colours of almost transparent pixels are no measure; premultiplied ones are what is seen.
            let differences = zip(seen(ours, hasAlpha), exact).map { abs($0 - $1) }
            #expect(differences.count == ours.count)
            #expect(differences.max() ?? 0 <= (hasAlpha ? 2.1 : 1.6), "alpha \(hasAlpha)")
        }
    }

    @Test("vector instructions do not change a byte", arguments: cases)
    func instructions(_ test: Case) throws {
        for hasAlpha in [false, true] {
            let image = try Pictures.noise(test.from.width, test.from.height, hasAlpha: hasAlpha, seed: 12)
            let fast = try Resampling(image: image, sizing: test.sizing).pixels()
            let plain = try Resampling(image: image, sizing: test.sizing, isFast: false).pixels()
            #expect(fast == plain)
        }
    }

    @Test("an even colour stays what it is, at every size")
    func evenColor() throws {
        for color in [[0, 0, 0, 255], [255, 255, 255, 255], [1, 128, 254, 255], [250, 3, 77, 128]] as [[UInt8]] {
            for (from, to) in [(300, 7), (7, 300), (1, 2), (2, 1), (50, 50)] {
                let sizing = Case(
                    from: PixelSize(width: from, height: from), to: PixelSize(width: to, height: to)
                ).sizing
                let image = try Pictures.drawn(from, from, hasAlpha: true) { _, _ in color }
                let result = try Resampling(image: image, sizing: sizing).pixels()
                let expected = [[UInt8]](repeating: color, count: to * to).flatMap { $0 }
                // A colour of alpha 128 is kept with 8 bits, of which 7 are left after premultiplication.
                let tolerance = color[3] == 255 ? 0 : 1
                #expect(zip(result, expected).allSatisfy { abs(Int($0) - Int($1)) <= tolerance })
            }
        }
    }

    @Test("transparent pixels do not tint their neighbours")
    func alphaEdge() throws {
        // Red on a transparent green: a filter without weights would give a green seam.
        let image = try Pictures.drawn(64, 64, hasAlpha: true) { x, _ in x < 31 ? [200, 0, 0, 255] : [0, 255, 0, 0] }
        let result = try ImageResizingTransformer(width: 16, height: 16).transformedImage(with: image, for: "")
        var partial = 0
        for y in 0..<16 {
            for x in 0..<16 {
                let pixel = result.pixel(x, y)
                // Right at the edge the filter overshoots, as it does between any two colours.
                #expect(pixel[1] == 0 && pixel[2] == 0, "\(pixel) at \(x), \(y)")
                if pixel[3] > 16 { #expect(abs(Int(pixel[0]) - 200) <= 12, "\(pixel) at \(x), \(y)") }
                if 1..<255 ~= pixel[3] { partial += 1 }
            }
        }
        #expect(partial >= 16)
    }

    @Test("a reduction has no aliases: a fine checkerboard becomes grey")
    func antialiased() throws {
        let image = try Pictures.drawn(512, 512) { x, y in [UInt8](repeating: (x + y) % 2 == 0 ? 0 : 255, count: 3) }
        let result = try ImageResizingTransformer(width: 100, height: 100).transformedImage(with: image, for: "")
        for y in 3..<97 { for x in 3..<97 { #expect(abs(Int(result.pixel(x, y)[0]) - 127) <= 3) } }
    }

    @Test("its memory depends on the result's width, not on the image")
    func memory() {
        let sizing = ImageSizing(
            PixelSize(width: 20_000, height: 20_000), to: PixelSize(width: 200, height: 200), fit: .inside,
            scalesUp: false)
        let bytes = Resampling.scratchMemory(PixelSize(width: 20_000, height: 20_000), hasAlpha: false, sizing)
        #expect(1..<2 << 20 ~= bytes)
    }

    private func seen(_ pixels: [UInt8], _ hasAlpha: Bool) -> [Double] {
        guard hasAlpha else { return pixels.map(Double.init) }
        return pixels.indices.map { at in
            at % 4 == 3 ? Double(pixels[at]) : Double(pixels[at]) * Double(pixels[at / 4 * 4 + 3]) / 255
        }
    }
}

/// The filter by its formula, in doubles, with values cut to 0...255 after each direction; colours premultiplied.
private struct Reference {
    let pixels: [Double]

    init(_ image: Bitmap, _ sizing: ImageSizing) {
        let channels = image.hasAlpha ? 4 : 3
        let columns = Self.weights(image.width, sizing.left, sizing.right, sizing.scaled.width)
        let rows = Self.weights(image.height, sizing.top, sizing.bottom, sizing.scaled.height)
        func value(_ x: Int, _ y: Int, _ channel: Int) -> Double {
            let at = (y * image.width + x) * channels
            let value = Double(image.pixels[at + channel])
            return channels == 4 && channel < 3 ? value * Double(image.pixels[at + 3]) / 255 : value
        }
        var wide = [Double](repeating: 0, count: columns.count * image.height * channels)
        for y in 0..<image.height {
            for (x, weights) in columns.enumerated() {
                for channel in 0..<channels {
                    var sum = 0.0
                    for (at, weight) in weights { sum += weight * value(at, y, channel) }
                    wide[(y * columns.count + x) * channels + channel] = min(max(sum, 0), 255)
                }
            }
        }
        var result: [Double] = []
        for weights in rows {
            for at in 0..<columns.count * channels {
                var sum = 0.0
                for (row, weight) in weights { sum += weight * wide[row * columns.count * channels + at] }
                result.append(min(max(sum, 0), 255))
            }
        }
        if channels == 4 {
            for at in result.indices where at % 4 < 3 { result[at] = min(result[at], result[at / 4 * 4 + 3]) }
        }
        pixels = result
    }

    private static func weights(_ size: Int, _ from: Double, _ to: Double, _ count: Int) -> [[(Int, Double)]] {
        let scale = (to - from) / Double(count)
        let width = max(1, scale)
        return (0..<count).map { i in
            let center = from + (Double(i) + 0.5) * scale
            let all = (0..<size).map { ($0, lanczos((Double($0) + 0.5 - center) / width)) }.filter { $0.1 != 0 }
            let sum = all.reduce(0) { $0 + $1.1 }
            return all.map { ($0.0, $0.1 / sum) }
        }
    }

    private static func lanczos(_ x: Double) -> Double {
        if x == 0 { return 1 }
        guard abs(x) < 3 else { return 0 }
        return 3 * sin(.pi * x) * sin(.pi * x / 3) / (.pi * .pi * x * x)
    }
}
