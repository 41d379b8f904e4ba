import Testing
import WebImage

@Suite(.timeLimit(.minutes(5)))
struct FormatTests {
    private static let signatures: [(ImageFormat?, [UInt8])] = [
        (.jpeg, [0xFF, 0xD8, 0xFF, 0xE0]),
        (.png, [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]),
        (.gif, Array("GIF89a".utf8)),
        (.gif, Array("GIF87a".utf8)),
        (nil, Array("GIF88a......".utf8)),
        (.webp, Array("RIFF\0\0\0\0WEBPVP8 ".utf8)),
        (nil, Array("RIFF\0\0\0\0WAVEfmt ".utf8)),
        (.avif, [0, 0, 0, 0x1C] + Array("ftypavif\0\0\0\0mif1miaf".utf8)),
        (.avif, [0, 0, 0, 0x1C] + Array("ftypmif1\0\0\0\0miafavif".utf8)),
        (.heic, [0, 0, 0, 0x18] + Array("ftypheic\0\0\0\0mif1heic".utf8)),
        (.heic, [0, 0, 0, 0x18] + Array("ftypmif1\0\0\0\0mif1heic".utf8)),
        (nil, [0, 0, 0, 0x18] + Array("ftypisom\0\0\0\0mp41avc1".utf8)),
        (.tiff, [0x49, 0x49, 0x2A, 0, 8, 0, 0, 0]),
        (.tiff, [0x4D, 0x4D, 0, 0x2A, 0, 0, 0, 8]),
        (.tiff, [0x49, 0x49, 0x2B, 0, 8, 0, 0, 0]),
        (.bmp, bitmap(width: 2, height: 3)),
        (nil, Array("BMW is a maker of cars".utf8)),
        (.ico, [0, 0, 1, 0, 1, 0, 16, 16, 0, 0, 1, 0]),
        (.jxl, [0xFF, 0x0A, 0x7A]),
        (.jxl, [0, 0, 0, 0x0C, 0x4A, 0x58, 0x4C, 0x20, 0x0D, 0x0A, 0x87, 0x0A]),
        (.jp2, [0, 0, 0, 0x0C, 0x6A, 0x50, 0x20, 0x20, 0x0D, 0x0A, 0x87, 0x0A]),
        (.jp2, [0xFF, 0x4F, 0xFF, 0x51]),
        (.svg, Array("<svg xmlns='http://www.w3.org/2000/svg'/>".utf8)),
        (.svg, [0xEF, 0xBB, 0xBF] + Array("\r\n <?xml version=\"1.0\"?>\n<!-- > - -->\n<svg>".utf8)),
        (.svg, Array("<!DOCTYPE svg PUBLIC \"a\" \"b\" [ <!ENTITY x \"<svg>\"> ]><SVG>".utf8)),
        (nil, Array("<?xml version=\"1.0\"?><svgfont>".utf8)),
        (nil, Array("<?xml version=\"1.0\"?><rss>".utf8)),
        (nil, Array("<!DOCTYPE html><svg>".utf8)),
        (nil, Array("<!-- <svg> -->".utf8)),
        (nil, []),
    ]

    private static func bitmap(width: UInt8, height: UInt8, headerLength: UInt8 = 40) -> [UInt8] {
        Array("BM".utf8) + [90, 0, 0, 0, 0, 0, 0, 0, 54, 0, 0, 0, headerLength, 0, 0, 0]
            + [width, 0, 0, 0, height, 0, 0, 0, 1, 0, 24, 0]
    }

    @Test(arguments: signatures)
    func `the first bytes tell the format`(expected: ImageFormat?, bytes: [UInt8]) {
        #expect(bytes.withUnsafeBytes { ImageFormat(sniffing: $0) } == expected)
    }

    @Test
    func `codes, names and types are one to one`() {
        for format in ImageFormat.allCases {
            #expect(ImageFormat(recordCode: format.recordCode) == format)
            #expect(ImageFormat(rawValue: format.rawValue) == format)
        }
        #expect(ImageFormat(recordCode: 200) == nil)
        #expect(ImageFormat.allCases.map(\.recordCode).sorted() == (0...12).map { UInt8($0) })
        #expect(Set(ImageFormat.allCases.map(\.fileExtension)).count == ImageFormat.allCases.count)
        #expect(ImageFormat.jpeg.fileExtension == "jpg")
        #expect(ImageFormat.jpeg.mimeType == "image/jpeg")
        #expect(ImageFormat.svg.mimeType == "image/svg+xml")
        #expect(ImageFormat.allCases.filter(ImageCoder.canDecode) == [.jpeg, .png, .gif, .webp, .avif])
    }

    @Test(arguments: [
        ("<!DOCTYPE html>\n<html>", #"text/html, starts with "<!DOCTYPE html>\x0a<html>""#),
        ("<html><head>", #"text/html, starts with "<html><head>""#),
        ("<?xml version='1.0'?><Error/>", #"text/xml, starts with "<?xml version='1.0'?><Error/>""#),
        ("{\"error\": 404}", #"application/json, starts with "{\x22error\x22: 404}""#),
        ("Not Found, sorry", #"text/plain, starts with "Not Found, sorry""#),
        ("%PDF-1.7 and more", #"application/pdf, starts with "%PDF-1.7 and more""#),
        ("\u{1B}[31m is no colour here", #"text/plain, starts with "\x1b[31m is no colour here""#),
        ("\0\u{1}\u{2}\u{3}4567890123456", #"application/octet-stream, starts with "\x00\x01\x02\x034567890123456""#),
        (
            String(repeating: "a", count: 100), "text/plain, starts with \"\(String(repeating: "a", count: 40))\""
        ),
        (
            "é" + String(repeating: "\0", count: 100),
            #"application/octet-stream, starts with "\xc3\xa9\x00\x00\x00\x00\x00\x00\x00\x00""#
        ),
    ])
    func `a body without an image says what it is`(body: String, message: String) {
        let bytes = Array(body.utf8)
        for level in [ValidationLevel.header, .structure, .decode] {
            let error = ImageCoder().failure(bytes, level: level)
            #expect(error?.code == .badImageData)
            #expect(error?.message == message)
            #expect(error?.isIncompleteImage == false)
        }
        #expect(throws: WebImageError.self) { try ImageCoder().inspectHeader(bytes) }
    }

    @Test(arguments: ValidationLevel.allCases)
    func `an empty body is refused at every level`(level: ValidationLevel) {
        #expect(ImageCoder().failure([], level: level)?.message == "the body is empty")
    }

    @Test
    func `level none keeps everything and tells the format it knows`() throws {
        let none = ImageCoder()
        #expect(try none.verify(Array("hello".utf8), level: .none).format == .unknown)
        #expect(try none.verify(Array(Sample.png.bytes.prefix(20)), level: .none).format == .png)
        #expect(try none.verify(Sample.png.bytes, level: .none).width == 0)
    }

    @Test
    func `a known format without a check is kept at level header alone`() throws {
        for (format, bytes) in Self.signatures {
            guard let format, !ImageCoder.canDecode(format) else { continue }
            #expect(try ImageCoder().verify(bytes, level: .header).format == format)
            for level in [ValidationLevel.structure, .decode] {
                let error = ImageCoder().failure(bytes, level: level)
                #expect(error?.code == .unsupportedFormat && error?.unverifiedFormat == format)
                #expect(error?.message == "\(format.rawValue.uppercased()) cannot be verified")
            }
        }
    }

    @Test
    func `the size of a BMP is told`() throws {
        let info = try ImageCoder().verify(Self.bitmap(width: 2, height: 3), level: .header)
        #expect((info.width, info.height) == (2, 3))
        #expect(ImageCoder().failure(Self.bitmap(width: 2, height: 0), level: .header)?.code == .badImageData)
        let core = try ImageCoder().verify(Self.bitmap(width: 2, height: 0, headerLength: 12), level: .none)
        #expect(core.format == .bmp)
    }

    @Test
    func `an arriving body asks for more until its first bytes decide`() throws {
        let coder = ImageCoder()
        for undecided in ["", "G", "GIF8", "RIFF\0\0\0\0", "\0\0\0", "<", "<?xml", "  \n", "<!-- ", "<sv", "Not", "BM"]
        {
            #expect(try coder.inspectHeader(Array(undecided.utf8)) == false, "\(undecided)")
        }
        for decided in ["<h", "<!DOCTYPE h", "<!doctype HTML>", "Not Found, sorry", "{\"error\": true}"] {
            #expect(throws: WebImageError.self, "\(decided)") { try coder.inspectHeader(Array(decided.utf8)) }
        }
        #expect(throws: WebImageError.self) { try coder.inspectHeader([UInt8](repeating: 0x20, count: 5_000)) }
        #expect(throws: WebImageError.self) {
            try coder.inspectHeader(ChunkSurgery.pngHeader(width: 30_000, height: 30_000))
        }
        #expect(throws: WebImageError.self) { try coder.inspectHeader(ChunkSurgery.pngHeader(width: 0, height: 5)) }
        #expect(try coder.inspectHeader(Array("<svg>".utf8)))
    }
}
