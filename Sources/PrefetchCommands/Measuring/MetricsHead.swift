internal import PrefetchModel

/// The head of a request as it arrives (RFC 9112). What two readers could take for different requests is refused.
struct MetricsHead {
    enum Reading: Equatable {
        case incomplete
        case request(MetricsServer.Request)
        /// HTTP status code.
        case refused(Int)
    }

    private static let maxBytes = 8_192
    private static let (tab, lineFeed, carriageReturn) = (UInt8(ascii: "\t"), UInt8(ascii: "\n"), UInt8(ascii: "\r"))
    private static let versions = ["HTTP/1.0", "HTTP/1.1"]
    /// Any other word is no method of HTTP.
    private static let otherMethods = ["POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"]

    private let names: ListenNames
    private var bytes: [UInt8] = []

    /// * `names`: accepted hosts.
    init(names: ListenNames) { self.names = names }

    var isEmpty: Bool { bytes.isEmpty }

    /// Whether the response has no body.
    var isOfHEAD: Bool { bytes.starts(with: "HEAD ".utf8) }

    /// Takes bytes up to the end of the head; what follows is ignored.
    mutating func take(_ part: [UInt8]) -> Reading {
        for byte in part {
            let isBreak = byte == Self.lineFeed || byte == Self.carriageReturn
            // Empty lines before the request (section 2.2).
            if bytes.isEmpty && isBreak { continue }
            guard bytes.count < Self.maxBytes else { return .refused(431) }
            // A line break is both bytes.
            guard (byte == Self.lineFeed) == (bytes.last == Self.carriageReturn),
                isBreak || byte == Self.tab || (byte >= 0x20 && byte != 0x7F)
            else { return .refused(400) }
            bytes.append(byte)
            if byte == Self.lineFeed && bytes.suffix(4).elementsEqual("\r\n\r\n".utf8) { return reading }
        }
        return .incomplete
    }

    private var reading: Reading {
        let lines = bytes.split { $0 == Self.lineFeed || $0 == Self.carriageReturn }
        let words = lines[0].split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false)
            .map { String(decoding: $0, as: UTF8.self) }
        let fields = lines.dropFirst().compactMap(Self.field)
        // In ASCII, texts are equal only if their bytes are.
        guard lines[0].allSatisfy({ (0x20...0x7E).contains($0) }), words.count == 3, words[1].hasPrefix("/"),
            Self.versions.contains(words[2]), fields.count == lines.count - 1
        else { return .refused(400) }
        guard words[0] == "GET" || words[0] == "HEAD" else {
            return .refused(Self.otherMethods.contains(words[0]) ? 405 : 400)
        }
        func values(_ name: String) -> [String] { fields.filter { $0.isNamed(name) }.map(\.value) }
        let (hosts, lengths) = (values("Host"), values("Content-Length"))
        guard hosts.count <= 1, lengths.count + values("Transfer-Encoding").count <= 1,
            lengths.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy { (0x30...0x39).contains($0) } })
        else { return .refused(400) }
        guard hosts.allSatisfy(names.contains) else { return .refused(421) }
        let path = String(words[1].prefix { $0 != "?" })
        return .request(MetricsServer.Request(path: path, accept: values("Accept").joined(separator: ",")))
    }

    private static func field(_ line: ArraySlice<UInt8>) -> HTTPHeader? {
        let name = line.prefix { HTTPHeader.isTokenByte($0) }
        guard !name.isEmpty, name.endIndex < line.endIndex, line[name.endIndex] == UInt8(ascii: ":") else { return nil }
        let value = line[(name.endIndex + 1)...].drop { $0 <= 0x20 }.reversed().drop { $0 <= 0x20 }.reversed()
        return HTTPHeader(String(decoding: name, as: UTF8.self), String(decoding: value, as: UTF8.self))
    }
}
