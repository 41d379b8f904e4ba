/// What a response says of the coding of its body (RFC 9110, section 8.4). Many servers name there what is none, as an upload once did (UTF-8,
/// base64, a media type) or as a transport did that is over (aws-chunked): the body is an image all the same.
struct ContentCoding {
    /// Those that curl decodes.
    private static let known: Set<ByteText> = ["identity", "none", "gzip", "x-gzip", "deflate", "br", "zstd"]

    /// Whether curl decodes all of them. It refuses a body of which it does not know one: of such a body ``BodyLayers`` takes off what it finds.
    private(set) var isKnown = true
    /// Whether the body may be in the frames of an upload (``AWSChunks``).
    private(set) var mayBeFramed = false
    /// How often it may be packed as gzip or zlib, at most as often as curl unpacks.
    private(set) var packings = 0
    private static let packing: Set<ByteText> = ["gzip", "x-gzip", "deflate"]
    private static let mostPackings = 5

    /// * `lines`: values of `Content-Encoding`.
    init(_ lines: [String]) {
        for line in lines {
            for part in line.split(atByte: ",") {
                let name = Substring(part.utf8.trimming { $0 == 0x20 || $0 == 0x09 }).asciiLowercased
                if Self.packing.contains(name) { packings = min(packings + 1, Self.mostPackings) }
                if name.isEmpty || Self.known.contains(name) { continue }
                isKnown = false
                if name.hasBytes(of: "aws-chunked") { mayBeFramed = true }
            }
        }
    }
}

extension Substring.UTF8View {
    fileprivate func trimming(_ isSpace: (UInt8) -> Bool) -> Substring.UTF8View {
        var rest = self[...]
        while let first = rest.first, isSpace(first) { rest.removeFirst() }
        while let last = rest.last, isSpace(last) { rest.removeLast() }
        return rest
    }
}

/// The frames of a chunked upload to S3 (AWS Signature Version 4, "Transferring payload in multiple chunks"), which some stores keep as part of
/// the object: `SIZE;chunk-signature=...`, or SIZE alone, in hexadecimal, then the bytes, then a line break; after a frame of size 0 follow
/// trailers. Most objects with this coding have none.
struct AWSChunks {
    private enum State {
        case size
        case signature
        case lineFeed
        case data
        /// The line break after the bytes of a frame.
        case dataEnd
        case end
        /// It has no frames.
        case plain
    }

    private var state = State.size
    /// Digits of the size that was begun.
    private var digits: [UInt8] = []
    private var lineLength = 0
    private var left = 0
    private var isFirst = true
    private static let mostDigits = 15
    private static let longestLine = 1024

    /// At most so many bytes are sent for a body of `count` bytes: a frame has 8 KiB or more, and 90 bytes of its own.
    static func longest(_ count: Int) -> Int {
        let (sum, isTooMany) = count.addingReportingOverflow(count / 64 + 4096)
        return isTooMany ? count : sum
    }

    /// Passes the bytes without their frames on.
    /// * `take`: returns whether it wants more.
    /// - Returns: whether more is wanted; nil: a frame is broken.
    mutating func read(_ bytes: UnsafeRawBufferPointer, take: (UnsafeRawBufferPointer) -> Bool) -> Bool? {
        var rest = bytes[...]
        while let byte = rest.first {
            switch state {
            case .plain: return take(UnsafeRawBufferPointer(rebasing: rest))
            case .end: return true
            case .data:
                let part = rest.prefix(left)
                guard take(UnsafeRawBufferPointer(rebasing: part)) else { return false }
                left -= part.count
                rest = rest.dropFirst(part.count)
                if left == 0 { state = .dataEnd }
                continue
            case .size:
                guard readSize(byte) else {
                    guard isFirst else { return nil }
                    // No image begins with hexadecimal digits and either of the two.
                    state = .plain
                    let begun = digits
                    guard begun.withUnsafeBytes({ $0.isEmpty || take($0) }) else { return false }
                    continue
                }
            case .signature:
                lineLength += 1
                guard lineLength <= Self.longestLine else { return nil }
                if byte == 0x0D { state = .lineFeed }
            case .lineFeed:
                guard byte == 0x0A else { return nil }
                beginData()
            case .dataEnd:
                if byte == 0x0A { state = .size } else if byte != 0x0D { return nil }
            }
            rest = rest.dropFirst()
        }
        return true
    }

    private mutating func readSize(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x46, 0x61...0x66:
            guard digits.count < Self.mostDigits else { return false }
            digits.append(byte)
            return true
        case UInt8(ascii: ";") where !digits.isEmpty: state = .signature
        case 0x0D where !digits.isEmpty: state = .lineFeed
        default: return false
        }
        return true
    }

    private mutating func beginData() {
        left = Int(String(decoding: digits, as: UTF8.self), radix: 16) ?? 0
        state = left == 0 ? .end : .data
        (digits, lineLength, isFirst) = ([], 0, false)
    }
}
