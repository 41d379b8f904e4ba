import Glibc
import Origin
import TestSupport
import Testing

@testable import WebImage

/// Other images stored instead of those that came.
@Suite("Variants of loads", .timeLimit(.minutes(5)))
struct VariantLoadTests {
    private let fixture: ManagerFixture
    private let coder = ImageCoder()

    init() throws { fixture = try ManagerFixture() }

    private func recipe(
        _ width: Int, _ height: Int, _ fit: ImageFit = .inside, animations: Bool = false,
        change: (inout ImageVariant) -> Void = { _ in }
    ) -> VariantRecipe {
        var variant = ImageVariant()
        variant.resize = PixelSize(width: width, height: height)
        variant.fit = fit
        variant.transformsAnimations = animations
        change(&variant)
        return VariantRecipe(variant)
    }

    private func load(
        _ url: String, _ recipe: VariantRecipe, from manager: ImageManager? = nil,
        change: (inout LoadRequest) -> Void = { _ in }
    ) async throws(WebImageError) -> LoadedImage {
        var request = LoadRequest(url: url, key: url)
        request.apply(recipe)
        change(&request)
        let manager = if let manager { manager } else { try? fixture.manager() }
        guard let manager else { throw WebImageError(.invalidConfiguration, "no manager") }
        return try await manager.load(request)
    }

    private func route(_ path: String, _ bytes: [UInt8]) -> String {
        fixture.origin.route(path, OriginResponse(body: bytes))
        return fixture.origin.url(path)
    }

    private func bytes(_ image: LoadedImage) throws -> [UInt8] {
        let path = try #require(image.path)
        return try #require(readFile(path))
    }

    private func pixels(_ image: LoadedImage) throws -> Bitmap { try coder.decode(try bytes(image)) }

    @Test("the original is kept beside its variant, in memory or spooled to a file; each has a record of its own")
    func keepsOriginal() async throws {
        // More than a mebibyte goes through a file, which cannot have two keys.
        let large = GeneratedImage.gif(seed: 3, width: 700, height: 700, frames: 4)
        #expect(large.count > 1 << 20)
        for (path, body, width) in [
            ("/c.jpg", GeneratedImage.jpeg(seed: 3, width: 80, height: 80), 20),
            ("/c.gif", GeneratedImage.gif(seed: 3, width: 80, height: 80, frames: 3), 80), ("/large.gif", large, 700),
        ] {
            let url = route(path, body)
            let manager = try fixture.manager()
            let loaded = try await load(url, recipe(20, 20) { $0.keepsOriginal = true }, from: manager)
            #expect(loaded.info.width == width && loaded.info.level == .decode && loaded.key != url)
            let found = try #require(try await manager.cache.imageFromDiskCache(forKey: url))
            #expect(found.bytes == body && found.info.level == .decode && found.digest == SHA256.hash(body))
            let variant = try #require(try await manager.cache.imageFromDiskCache(forKey: loaded.key))
            #expect(variant.bytes == (try bytes(loaded)))
        }
    }

    @Test("animations are recognised at every level of validation", arguments: ValidationLevel.allCases)
    func levels(level: ValidationLevel) async throws {
        let body = GeneratedImage.gif(seed: 4, width: 64, height: 64, frames: 4)
        let kept = try await load(route("/d.gif", body), recipe(16, 16)) { $0.level = level }
        #expect(try bytes(kept) == body)
        let picture = route("/d.jpg", GeneratedImage.jpeg(seed: 4, width: 64, height: 64))
        let small = try await load(picture, recipe(16, 16)) { $0.level = level }
        #expect(try pixels(small).size == PixelSize(width: 16, height: 16))
    }

    @Test("what is resized after a reduced decode is what a full decode gives")
    func reducedDecode() async throws {
        let body = GeneratedImage.jpeg(seed: 3, width: 1203, height: 907, quality: 95)
        let loaded = try await load(route("/r.jpg", body), recipe(120, 120, .cover) { $0.format = .png })
        let full = try ImageResizingTransformer(width: 120, height: 120, fit: .cover)
            .transformedImage(with: coder.decode(body), for: "")
        let made = try pixels(loaded)
        #expect(made.size == full.size)
        var squares = 0
        for (one, other) in zip(made.pixels, full.pixels) {
            squares += (Int(one) - Int(other)) * (Int(one) - Int(other))
        }
        // 38 dB
        #expect(Double(squares) / Double(made.pixels.count) < 10)
    }

    @Test(
        "the orientation is applied at any size, and the tag says so; a profile of CMYK does not stay with RGB pixels")
    func metadata() async throws {
        var picture = try Pictures.drawn(64, 32) { x, _ in x < 32 ? [250, 0, 0] : [0, 0, 250] }
        picture.metadata.exif =
            Array("II*\0".utf8) + [8, 0, 0, 0, 1, 0, 0x12, 1, 3, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]
        picture.metadata.iccProfile = Self.profile("CMYK")
        var body = try coder.encode(picture, as: .jpeg)
        let tag = try #require(body.firstRange(of: [0x12, 1, 3, 0, 1, 0, 0, 0, 1]))
        body[tag.upperBound - 1] = 6
        let url = route("/f.jpg", body)
        for (size, index) in [(16, 0), (64, 1)] {
            let loaded = try await load(url, recipe(size, 2 * size))
            let turned = try pixels(loaded)
            #expect(turned.size == PixelSize(width: [16, 32][index], height: [32, 64][index]))
            #expect(loaded.info.orientation == .up)
            #expect(turned.metadata.exif == picture.metadata.exif && turned.metadata.iccProfile == [])
            // Turned to the right: what was left is above.
            #expect(turned.pixel(8, 4)[0] > 200 && turned.pixel(8, turned.height - 4)[2] > 200)
        }
        picture.metadata = ImageMetadata(iccProfile: Self.profile("RGB "))
        let profiled = route("/g.jpg", try coder.encode(picture, as: .jpeg))
        #expect(try pixels(try await load(profiled, recipe(16, 16))).metadata == picture.metadata)
        let stripped = try await load(profiled, recipe(16, 16) { $0.stripsMetadata = true })
        #expect(try pixels(stripped).metadata == ImageMetadata())
    }

    @Test("what would take more memory than the limit is refused with the figure; nothing is stored")
    func memory() async throws {
        let url = route("/g.png", GeneratedImage.png(seed: 7, width: 30, height: 30))
        let manager = try fixture.manager()
        let error = await #expect(throws: WebImageError.self) {
            _ = try await load(url, recipe(20_000, 20_000, .pad), from: manager)
        }
        #expect(error?.code == .tooLarge)
        let text = error?.message ?? ""
        #expect(text.hasPrefix("to resize 30 x 30 pixels to 20000 x 20000 takes 152"), "\(text)")
        #expect(text.hasSuffix(" MiB, the limit is 512.0 MiB (--max-decode-memory raises it)"), "\(text)")
        #expect(try await manager.cache.totalDiskCount() == 0)
        #expect(manager.coder.memory.used == 0)
    }

    @Test("a damaged download is refused as without a variant")
    func damage() async throws {
        let whole = GeneratedImage.jpeg(seed: 8, width: 300, height: 300)
        let png = GeneratedImage.png(seed: 8, width: 300, height: 300)
        var inside = png
        inside[png.count / 2] ^= 0x55
        for body in [Array(whole.dropLast(whole.count / 3)) + [0xFF, 0xD9], inside, Array(png.dropLast(30))] {
            let url = route("/h", body)
            let error = await #expect(throws: WebImageError.self) { _ = try await load(url, recipe(30, 30)) }
            #expect(error?.code == .badImageData)
        }
    }

    private func verdict(_ url: String, _ recipe: VariantRecipe?) async -> String {
        var request = LoadRequest(url: url, key: url)
        if let recipe { request.apply(recipe) }
        do {
            return "kept at \(try await fixture.manager().load(request).info.level)"
        } catch {
            return (error as? WebImageError).map { "\($0.code.rawValue) \($0.isIncompleteImage)" } ?? "\(error)"
        }
    }

    @Test("the verdict is the same with and without a variant")
    func verdicts() async throws {
        var pixelFormat = HexSamples.avif
        // 4:2:0 becomes 4:4:4, which libavif decodes.
        pixelFormat[ChunkSurgery.offset(of: Array("av1C".utf8), in: pixelFormat) + 6] &= 0xF3
        var badFrame = LargeImage.frame(0, 0, 4, 4)
        badFrame[12] = 0xFF
        let badGIF = LargeImage.gif(width: 4, height: 4, frames: [LargeImage.frame(0, 0, 4, 4), badFrame])
        var badPNG = Sample.animatedPNG.bytes
        badPNG[ChunkSurgery.lastOffset(of: Array("fdAT".utf8), in: badPNG) + 10] ^= 0x55
        badPNG = ChunkSurgery.repaired(badPNG)
        var palette = Sample.palettePNG.bytes
        palette[palette.count / 2] ^= 0x55
        let jpeg = Sample.baselineJPEG.bytes, progressive = Sample.progressiveJPEG.bytes
        var bodies = [
            badGIF, badPNG, palette, Array(Sample.png.bytes.dropLast(20)), Array(Sample.gif.bytes.dropLast(9)),
        ]
        bodies += [jpeg, progressive, Sample.png.bytes, Sample.animatedGIF.bytes, Sample.gif.bytes]
        for body in [jpeg, progressive] {
            bodies += [Array(body.dropLast(2)), Array(body.dropLast(body.count / 4)) + [0xFF, 0xD9]]
        }
        if ImageCoder.canDecode(.webp) { bodies += [Sample.webp.bytes, Array(Sample.lossyWebP.bytes.dropLast(30))] }
        if ImageCoder.canDecode(.avif) { bodies += [pixelFormat, HexSamples.avif, Array(HexSamples.avif.dropLast(9))] }
        let recipes = [
            recipe(10, 10), recipe(10, 10, animations: true),
            recipe(100, 100) { $0.stripsMetadata = true }, recipe(100, 100) { $0.format = .png },
        ]
        for (index, body) in bodies.enumerated() {
            let url = route("/verdict/\(index)", body)
            let plain = await verdict(url, nil)
            for (number, recipe) in recipes.enumerated() {
                let other = await verdict(url, recipe)
                #expect(other == plain, "body \(index), recipe \(number)")
            }
        }
    }

    @Test("an original in the cache that is damaged, or not the expected one, is fetched again")
    func originals() async throws {
        let body = GeneratedImage.png(seed: 9, width: 90, height: 60)
        let url = route("/i.png", body)
        let manager = try fixture.manager()
        let original = try await manager.loadImage(with: url)
        let small = try await load(url, recipe(30, 30), from: manager) { $0.expectedDigest = SHA256.hash(body) }
        #expect(small.outcome == .hit && fixture.origin.requestCount() == 1)
        let changed = GeneratedImage.png(seed: 10, width: 90, height: 60)
        _ = route("/i.png", changed)
        let other = try await load(url, recipe(20, 20), from: manager) { $0.expectedDigest = SHA256.hash(changed) }
        #expect(other.outcome == .downloaded && fixture.origin.requestCount() == 2)
        // Its record still says that it is whole.
        let path = try #require(original.path)
        var bytes = try #require(readFile(path))
        bytes[bytes.count / 2] ^= 0x55
        let file = try #require(fopen(path, "r+"))
        fwrite(bytes, 1, bytes.count, file)
        fclose(file)
        let again = try await load(url, recipe(10, 10), from: manager)
        #expect(again.outcome == .downloaded && fixture.origin.requestCount() == 3)
    }

    /// The least that counts as a profile: its size, version, colour space and signature.
    private static func profile(_ space: String) -> [UInt8] {
        var profile = [UInt8](repeating: 0, count: 132)
        profile[3] = 132
        profile[8] = 4
        profile.replaceSubrange(12..<16, with: "mntr".utf8)
        profile.replaceSubrange(16..<20, with: space.utf8)
        profile.replaceSubrange(20..<24, with: "XYZ ".utf8)
        profile.replaceSubrange(36..<40, with: "acsp".utf8)
        return profile
    }
}
