import Testing
import WebImage

@Suite(.timeLimit(.minutes(5)))
struct CodecPrefixTests {
    private let coder = ImageCoder()

    @Test(arguments: Sample.allCases)
    func `a whole image passes every level with its size`(sample: Sample) throws {
        for level in [ValidationLevel.header, .structure, .decode] {
            let info = try coder.verify(sample.bytes, level: level)
            #expect(info == sample.info(level: level))
        }
    }

    @Test(arguments: Sample.allCases, [ValidationLevel.structure, .decode])
    func `every proper prefix is refused, and as one that ends early`(sample: Sample, level: ValidationLevel) {
        for count in 1..<sample.bytes.count {
            let error = coder.failure(Array(sample.bytes[..<count]), level: level)
            #expect(error?.code == .badImageData, "a prefix of \(count) of \(sample.bytes.count) bytes")
            // Below twelve bytes a format may not be recognised, or be taken for text.
            if count >= 12 { #expect(error?.isIncompleteImage == true, "\(count) bytes: \(error?.message ?? "")") }
        }
    }

    @Test(arguments: Sample.allCases)
    func `bytes after the end are allowed`(sample: Sample) throws {
        for tail in [[0], [0xFF, 0xD8, 0xFF], [UInt8](repeating: 0x20, count: 100)] as [[UInt8]] {
            let info = try coder.verify(sample.bytes + tail, level: .decode)
            #expect(info.warnings.isEmpty)
        }
    }

    @Test(arguments: Sample.allCases)
    func `the header of an arriving image is read once and stays read`(sample: Sample) throws {
        var isRead = false
        for count in 0...sample.bytes.count {
            let now = try coder.inspectHeader(Array(sample.bytes[..<count]))
            #expect(now || !isRead, "\(count) bytes")
            isRead = now
        }
        #expect(isRead)
    }
}
