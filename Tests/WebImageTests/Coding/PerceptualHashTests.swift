import Testing

@testable import WebImage

@Suite("Perceptual hashes", .timeLimit(.minutes(5)))
struct PerceptualHashTests {
    /// A disc, a ring and squares on slopes.
    private func scene(_ width: Int, _ height: Int, hasAlpha: Bool = false) throws -> Bitmap {
        var pixels: [UInt8] = []
        for y in 0..<height {
            for x in 0..<width {
                let (u, v) = (x * 1000 / width, y * 1000 / height)
                let isDisc = (u - 300) * (u - 300) + (v - 400) * (v - 400) < 250 * 250
                let far = (u - 800) * (u - 800) + (v - 900) * (v - 900)
                let isRing = 300 * 300 < far && far < 500 * 500
                pixels.append(UInt8(isDisc ? 230 : u * 200 / 1000))
                pixels.append(UInt8(isRing ? 250 - u * 100 / 1000 : v * 255 / 1000))
                pixels.append(UInt8((u / 90 + v / 140) % 2 * 120 + 40))
                if hasAlpha { pixels.append(UInt8((x + y) % 256)) }
            }
        }
        return try Bitmap(width: width, height: height, hasAlpha: hasAlpha, pixels: pixels)
    }

    private func hash(_ image: Bitmap, as format: ImageFormat = .png, quality: Int = 90) throws -> PerceptualHash {
        let coder = ImageCoder()
        let bytes = try coder.encode(image, as: format, quality: quality)
        return try bytes.span.withUnsafeBytes { try PerceptualHash(of: $0, by: coder) }
    }

    /// What imagehash 4.3.2 with Pillow 13.0 says of the same pixels: `str(imagehash.phash(image))`.
    @Test(
        "Hashes are those of imagehash: of larger and smaller images, of narrow ones, with alpha",
        arguments: [
            (300, 200, false, "80443f1fb17c7dc8"), (300, 200, true, "80443f1fb17c7dc8"),
            (20, 30, false, "80443f1fb07c5ccf"), (32, 32, false, "80453f1fb17c5dc2"),
            (640, 24, false, "80643f1fb17c4dca"), (900, 600, false, "80443f1fb17c7dc8"),
        ])
    func known(width: Int, height: Int, hasAlpha: Bool, hex: String) throws {
        #expect(try hash(scene(width, height, hasAlpha: hasAlpha)).hex == hex)
    }

    @Test("What is even, or the same on both sides, has no noise in its bits")
    func ties() throws {
        func image(_ side: Int, _ isWhite: (Int, Int) -> Bool) throws -> Bitmap {
            let grey = (0..<side * side).map { UInt8(isWhite($0 % side, $0 / side) ? 255 : 0) }
            return try Bitmap(width: side, height: side, hasAlpha: false, pixels: grey.flatMap { [$0, $0, $0] })
        }
        // As imagehash says.
        #expect(try hash(image(50) { _, _ in true }).hex == "8000000000000000")
        #expect(try hash(image(64) { (16..<48).contains($0) && (16..<48).contains($1) }).hex == "8200280028008200")
    }

    @Test("A JPEG of any quality and size has nearly the same hash, decoded at a part of its size")
    func jpeg() throws {
        let whole = try hash(scene(900, 600))
        for (width, height) in [(150, 100), (300, 200), (900, 600), (1201, 803), (2400, 1600)] {
            for quality in [30, 90] {
                let other = try hash(scene(width, height), as: .jpeg, quality: quality)
                let distance = (whole.bits ^ other.bits).nonzeroBitCount
                #expect(distance <= 2, "\(width) x \(height) at \(quality): \(other.hex)")
            }
        }
    }

    @Test("What cannot be decoded has none")
    func damaged() throws {
        let bytes = try ImageCoder().encode(scene(64, 48), as: .png)
        #expect(throws: WebImageError.self) {
            try bytes.prefix(200).withUnsafeBytes { try PerceptualHash(of: $0, by: ImageCoder()) }
        }
    }
}
