import Origin
import Testing
import WebImage

@Suite(.timeLimit(.minutes(5)))
struct CodecDamageTests {
    private let coder = ImageCoder()

    @Test
    func `the structure of a JPEG does not tell what its decode tells`() {
        // A restart marker in data without restarts.
        var jpeg = Sample.baselineJPEG.bytes
        jpeg.replaceSubrange((jpeg.count - 40)..<(jpeg.count - 38), with: [0xFF, 0xD0])
        #expect(coder.failure(jpeg, level: .structure) == nil)
        #expect(coder.failure(jpeg, level: .decode)?.message == "Corrupt JPEG data: premature end of data segment")
    }

    @Test
    func `a restart marker out of turn is damage`() {
        var jpeg = Sample.restartJPEG.bytes
        jpeg[ChunkSurgery.offset(of: [0xFF, 0xD1], in: jpeg) + 1] = 0xD5
        #expect(coder.failure(jpeg, level: .structure) == nil)
        #expect(coder.failure(jpeg, level: .decode)?.message.contains("RST") == true)
    }

    @Test
    func `a progressive JPEG without the scans of a component is refused`() {
        // The first scan brings the DC of all components: without it the others have nothing to refine.
        var jpeg = Sample.progressiveJPEG.bytes
        let first = ChunkSurgery.offset(of: [0xFF, 0xDA], in: jpeg)
        jpeg.removeSubrange(first..<ChunkSurgery.offset(of: [0xFF, 0xC4], in: Array(jpeg[first...])) + first)
        #expect(coder.failure(jpeg, level: .structure) == nil)
        #expect(coder.failure(jpeg, level: .decode) != nil)
    }

    @Test
    func `a JPEG of twelve bits is a format that cannot be verified`() {
        var jpeg = Sample.baselineJPEG.bytes
        jpeg[ChunkSurgery.offset(of: [0xFF, 0xC0], in: jpeg) + 4] = 12
        #expect(coder.failure(jpeg, level: .structure) == nil)
        let error = coder.failure(jpeg, level: .decode)
        #expect(error?.code == .unsupportedFormat && error?.unverifiedFormat == .jpeg)
    }

    @Test(arguments: [0xC3, 0xC5, 0xC7, 0xC9, 0xCB, 0xCE] as [UInt8])
    func `a JPEG of another process ends in an error`(frame: UInt8) {
        var jpeg = Sample.baselineJPEG.bytes
        jpeg[ChunkSurgery.offset(of: [0xFF, 0xC0], in: jpeg) + 1] = frame
        #expect(coder.failure(jpeg, level: .header) == nil)
        let code = coder.failure(jpeg, level: .decode)?.code
        #expect(code == .badImageData || code == .unsupportedFormat)
    }

    @Test
    func `stray bytes between markers are kept as warnings, at most eight`() throws {
        let jpeg = Sample.baselineJPEG.bytes
        let comment: [UInt8] = [0, 0, 0, 0xFF, 0xFE, 0, 3, 0x21]
        for (copies, kept) in [(1, 1), (20, 8)] {
            // Behind the APP0 segment.
            let bytes = Array(jpeg[..<20]) + (0..<copies).flatMap { _ in comment } + jpeg[20...]
            for level in [ValidationLevel.structure, .decode] {
                let info = try coder.verify(bytes, level: level)
                #expect(info.warnings.count == kept)
                #expect(info.warnings.allSatisfy { $0.contains("extraneous bytes before marker 0xfe") })
            }
        }
    }

    @Test(arguments: [Sample.baselineJPEG, .grayJPEG, .cmykJPEG, .restartJPEG, .progressiveJPEG])
    func `image data left over between a scan and the next marker is damage`(sample: Sample) {
        let jpeg = sample.bytes
        let stray = [UInt8](repeating: 0x11, count: 300)
        let atEnd = Array(jpeg.dropLast(2)) + stray + [0xFF, 0xD9]
        #expect(coder.failure(atEnd, level: .structure) == nil)
        #expect(coder.failure(atEnd, level: .decode)?.message.contains("extraneous bytes before marker 0xd9") == true)
    }

    @Test
    func `stray bytes between the headers of a later scan are damage, at structure too`() {
        let jpeg = Sample.progressiveJPEG.bytes
        let later = ChunkSurgery.lastOffset(of: [0xFF, 0xDA], in: jpeg)
        let comment: [UInt8] = [0xFF, 0xFE, 0, 3, 0x21]
        #expect(coder.failure(Array(jpeg[..<later]) + comment + jpeg[later...], level: .decode) == nil)
        let stray = Array(jpeg[..<later]) + comment + [1, 2, 3] + jpeg[later...]
        for level in [ValidationLevel.structure, .decode] {
            #expect(coder.failure(stray, level: level)?.message.contains("extraneous bytes") == true)
        }
    }

    @Test
    func `a damaged ancillary chunk of a PNG is kept as a warning`() throws {
        let chunk = ChunkSurgery.pngChunk("cHRM", [1, 2, 3, 4])
        let png = ChunkSurgery.insert(chunk, before: "IDAT", in: Sample.png.bytes)
        let info = try coder.verify(png, level: .decode)
        #expect(info.warnings.count == 1)
        #expect(info.warnings.first?.hasPrefix("cHRM") == true)
    }

    @Test(arguments: ["cHRM", "tEXt", "zTXt", "gAMA", "iCCP", "eXIf", "tRNS", "prVt"], ["IDAT", "IEND"])
    func `a wrong CRC in an ancillary chunk of a PNG is a warning, and the chunk counts for nothing`(
        name: String, place: String
    ) throws {
        var chunk = ChunkSurgery.pngChunk(name, name == "eXIf" ? Self.mirrored : [0, 1, 0, 2, 0, 3])
        chunk[chunk.count - 1] ^= 1
        let png = ChunkSurgery.insert(chunk, before: place, in: Sample.png.bytes)
        for level in [ValidationLevel.structure, .decode] {
            let info = try coder.verify(png, level: level)
            // libpng may have something to say of what is in it.
            #expect(info.warnings.first == "PNG chunk \(name): CRC error")
            #expect(!info.hasAlpha && info.orientation == .up)
        }
        #expect(try coder.decode(png) == coder.decode(Sample.png.bytes))
    }

    /// EXIF with the orientation 2.
    private static let mirrored: [UInt8] =
        Array("MM".utf8) + [0, 42, 0, 0, 0, 8, 0, 1, 0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 0]

    @Test(arguments: ["IDAT", "IEND", "acTL", "fcTL", "fdAT"])
    func `a wrong CRC in a chunk with pixels of a PNG is damage`(name: String) {
        var png = Sample.animatedPNG.bytes
        let place = ChunkSurgery.offset(of: Array(name.utf8), in: png)
        png[place + 4 + ChunkSurgery.data(of: name, in: png).count] ^= 1
        #expect(coder.failure(png, level: .structure)?.message == "PNG chunk \(name): CRC error")
    }

    @Test
    func `zeros before the trailer of a GIF are a warning, elsewhere they are damage`() throws {
        for sample in [Sample.gif, .animatedGIF] {
            let gif = Array(sample.bytes.dropLast())
            #expect(sample.bytes.last == 0x3B)
            for level in [ValidationLevel.structure, .decode] {
                let info = try coder.verify(gif + [0, 0, 0, 0x3B], level: level)
                #expect(info.warnings == ["GIF with 3 zero bytes before its trailer"])
                #expect(info.frameCount == sample.frameCount)
                #expect(coder.failure(gif + [0, 0], level: level)?.isIncompleteImage == true)
                let other = coder.failure(gif + [0, 0x2C, 0x3B], level: level)?.message
                #expect(other == "GIF block 0x0 at byte \(gif.count)")
            }
            #expect(try coder.decode(gif + [0, 0x3B]) == coder.decode(sample.bytes))
        }
    }

    @Test
    func `image data past the last row is a warning, too little of it is damage`() throws {
        let png = Sample.png.bytes
        let data = ChunkSurgery.data(of: "IDAT", in: png)
        let start = ChunkSurgery.offset(of: Array("IDAT".utf8), in: png) - 4
        let extra = Array(png[..<start]) + ChunkSurgery.pngChunk("IDAT", data + [1, 2, 3]) + png.suffix(12)
        #expect(try coder.verify(extra, level: .decode).warnings == ["IDAT: Extra compressed data"])
        for cut in [data.count / 2, data.count - 5, data.count - 1] {
            let short = Array(png[..<start]) + ChunkSurgery.pngChunk("IDAT", Array(data[..<cut])) + png.suffix(12)
            #expect(coder.failure(short, level: .structure) == nil)
            #expect(coder.failure(short, level: .decode) != nil, "\(cut) of \(data.count) bytes")
        }
        var wrongSum = data
        wrongSum[data.count - 1] ^= 1
        let bytes = Array(png[..<start]) + ChunkSurgery.pngChunk("IDAT", wrongSum) + png.suffix(12)
        #expect(coder.failure(bytes, level: .decode)?.message == "IDAT: incorrect data check")
    }

    @Test
    func `chunks in a wrong order are damage`() {
        let png = Sample.png.bytes
        let text = ChunkSurgery.pngChunk("tEXt", Array("a\0b".utf8))
        let apart = ChunkSurgery.insert(text + ChunkSurgery.pngChunk("IDAT", [0]), before: "IEND", in: png)
        #expect(coder.failure(apart, level: .structure)?.message.contains("apart") == true)
        let critical = ChunkSurgery.insert(ChunkSurgery.pngChunk("QQQQ", []), before: "IEND", in: png)
        #expect(coder.failure(critical, level: .structure)?.message.contains("QQQQ") == true)
        let palette = Sample.palettePNG.bytes
        let place = ChunkSurgery.offset(of: Array("PLTE".utf8), in: palette) - 4
        let bare = Array(palette[..<place]) + palette[(place + 12 + 768)...]
        #expect(coder.failure(bare, level: .structure)?.message.contains("PLTE") == true)
    }

    @Test
    func `what giflib, Pillow and browsers pass over in the codes of a GIF is a warning`() {
        let header = Array("GIF89a".utf8) + [2, 0, 1, 0, 0x80, 0, 0] + [0, 0, 0, 255, 255, 255]
        let control: [UInt8] = [0x21, 0xF9, 4, 1, 0, 0, 3, 0]
        func image(_ codes: [UInt8], size: UInt8 = 2) -> [UInt8] {
            [0x2C, 0, 0, 0, 0, 2, 0, 1, 0, 0, size, UInt8(codes.count)] + codes + [0, 0x3B]
        }
        func warnings(_ bytes: [UInt8]) -> [String]? {
            try? coder.verify(bytes, level: .decode).warnings
        }
        // Codes of three bits: clear, the two pixels, end.
        let (good, bad) = (image([0x44, 0x0A]), image([0x5C, 0x0A]))
        #expect(warnings(header + good) == [])
        #expect(warnings(header + bad) == ["GIF with an index without a color"])
        #expect(warnings(header + control + bad) == [])
        #expect(coder.failure(header + [0x21, 0xF9, 3, 0, 0, 0, 0] + good, level: .structure)?.code == .badImageData)
        // A third pixel; and one pixel, then a string of two.
        #expect(warnings(header + image([0x44, 0x80, 0x02])) == ["GIF with more pixels than its size"])
        #expect(warnings(header + image([0x84, 0x0B])) == ["GIF with more pixels than its size"])
        // Codes that begin with fewer bits: of two, then three; of one, two and three.
        #expect(warnings(header + image([0x86, 0x01], size: 1)) == [])
        #expect(warnings(header + image([0x21], size: 0)) == [])
    }

    /// Single bytes damaged: any verdict, no crash, and what `structure` rejects, `decode` rejects too.
    @Test(arguments: [
        Sample.animatedPNG, .gif, .animatedGIF, .compressedGIF, .webp, .lossyWebP, .alphaWebP, .animatedWebP, .avif,
        .animatedAVIF,
    ])
    func `no damaged byte upsets the walk`(sample: Sample) {
        for place in 0..<sample.bytes.count {
            var bytes = sample.bytes
            for flip in [0x01, 0x80, 0xFF] as [UInt8] {
                bytes[place] = sample.bytes[place] ^ flip
                if coder.failure(bytes, level: .structure) != nil {
                    #expect(coder.failure(bytes, level: .decode) != nil, "byte \(place) ^ \(flip)")
                }
            }
        }
    }

    @Test
    func `a WebP must be what its headers say`() {
        let still = Sample.webp.bytes
        let image = Array(still[12...])
        let canvas: [UInt8] = [0, 0, 0, 0, UInt8(Sample.width - 1), 0, 0, UInt8(Sample.height - 1), 0, 0]
        let extended = WebPSamples.riff(WebPSamples.chunk("VP8X", canvas) + WebPSamples.chunk("EXIF", [1]) + image)
        #expect(coder.failure(extended, level: .structure) == nil)
        var animation = Sample.animatedWebP.bytes
        animation[ChunkSurgery.offset(of: Array("ANIM".utf8), in: animation) + 2] = 0x69
        var wider = canvas
        wider[4] += 1
        for bad in [
            WebPSamples.riff(WebPSamples.chunk("VP8X", wider) + image),
            WebPSamples.riff(WebPSamples.chunk("VP8X", canvas)),
            WebPSamples.riff(WebPSamples.chunk("EXIF", [1]) + image),
            animation,
            WebPSamples.riff([]),
            WebPSamples.riff(WebPSamples.chunk("VP8 ", [1, 2, 3])),
        ] {
            let error = coder.failure(bad, level: .structure)
            #expect(error?.code == .badImageData)
            #expect(error?.isIncompleteImage == false, "\(error?.message ?? "")")
        }
    }

    /// Whatever browsers and Pillow make of a WebP, by libwebp's demuxer.
    @Test
    func `chunks of a WebP count as they do to its readers`() {
        let still = Sample.webp.bytes
        let image = Array(still[12...])
        let (width, height) = (UInt8(Sample.width - 1), UInt8(Sample.height - 1))
        let canvas: [UInt8] = [width, 0, 0, height, 0, 0]
        let head = WebPSamples.chunk("VP8X", [0x02, 0, 0, 0] + canvas) + WebPSamples.chunk("ANIM", [0, 0, 0, 0, 0, 0])
        func frame(_ canvas: [UInt8], _ image: [UInt8], longer: Int = 0) -> [UInt8] {
            var chunk = WebPSamples.chunk("ANMF", [0, 0, 0, 0, 0, 0] + canvas + [100, 0, 0, 0] + image)
            chunk[4] = UInt8(truncatingIfNeeded: Int(chunk[4]) + longer)
            return chunk
        }
        let (whole, unknown) = (frame(canvas, image), WebPSamples.chunk("abcd", [1, 2]))
        for good in [
            WebPSamples.riff(image + image),
            WebPSamples.riff(image + WebPSamples.chunk("VP8X", [0, 0, 0, 0] + canvas)),
            WebPSamples.riff(image + unknown + [1, 2, 3]),
            WebPSamples.riff(head + frame(canvas, image, longer: 2) + whole),
            WebPSamples.riff(head + frame([width, 0, 0, height, 0, 8], image) + whole),
            WebPSamples.riff(head + frame(canvas, image + unknown) + whole),
            WebPSamples.riff(head + frame(canvas, unknown) + whole),
        ] {
            #expect(coder.failure(good, level: .decode)?.message == nil)
        }
        let cut = WebPSamples.chunk("VP8 ", Array(Sample.lossyWebP.bytes[20...].dropLast(40)))
        for bad in [
            // Data that would go on in the chunk behind theirs.
            WebPSamples.riff(cut + WebPSamples.chunk("abcd", [UInt8](repeating: 0, count: 64))),
            WebPSamples.riff(image + [0x61, 0x62, 0x63, 0x64, 1, 0, 0, 0, 0]),
            WebPSamples.riff(image + [1, 2, 3]),
            WebPSamples.riff(WebPSamples.chunk("VP8X", [0x01, 0, 0, 0] + canvas) + image),
            WebPSamples.riff(head + frame(canvas, unknown)),
            WebPSamples.riff(head + whole + WebPSamples.chunk("ANMF", [1, 2]) + whole),
            WebPSamples.riff(head + whole + image),
            WebPSamples.riff(head + frame([255, 255, 255, 255, 255, 255], image) + whole),
        ] {
            #expect(coder.failure(bad, level: .decode)?.code == .badImageData)
        }
    }
}
