import Origin
import Testing

@testable import WebImage

@Suite("Content codings", .timeLimit(.minutes(1)))
struct ContentCodingTests {
    private let body = pseudoImage(100_000)

    @Test(
        "Codings that curl does not know are none",
        arguments: [
            ([], true, false), (["gzip"], true, false), (["GZIP, br", "x-gzip", "deflate,,zstd "], true, false),
            (["identity"], true, false), ([""], true, false), (["UTF-8"], false, false),
            (["gzip, utf-8"], false, false),
            (["AWS-Chunked"], false, true), (["gzip", "\taws-chunked "], false, true), (["\u{212A}"], false, false),
        ] as [([String], Bool, Bool)])
    func judgement(lines: [String], isKnown: Bool, mayBeFramed: Bool) {
        let coding = ContentCoding(lines)
        #expect(coding.isKnown == isKnown && coding.mayBeFramed == mayBeFramed)
    }

    @Test("An image in such a coding is that image, at one request each; a known coding beside them is decoded")
    func images() async throws {
        let server = try OriginServer()
        let codings = [
            "UTF-8", "aws-chunked", "base64", "binary", "8bit", "image/jpeg", "no", "bytes", "compress",
            "utf-8, binary",
        ]
        let downloader = try makeDownloader { $0.maxConcurrentDownloads = 1 }
        for (index, coding) in codings.enumerated() {
            for (framing, name) in [(.contentLength, "l"), (.chunked(size: 999), "c"), (.untilClose, "u")]
                as [(OriginResponse.Framing, String)]
            {
                let path = "/\(index)\(name)"
                server.route(
                    path, OriginResponse(headers: [("Content-Encoding", coding)], body: body, framing: framing))
                #expect(try await downloader.download(server.url(path)).body.bytes == body, "\(coding) \(name)")
            }
            server.route(
                "/gzip\(index)", OriginResponse(headers: [("content-encoding", "gzip")], body: gzip(body)))
            #expect(try await downloader.download(server.url("/gzip\(index)")).body.bytes == body, "after \(coding)")
        }
        #expect(server.requestCount() == 4 * codings.count)
    }

    @Test("A coding that is announced and not sent is still a bad image")
    func announced() async throws {
        let server = try OriginServer()
        for (index, coding) in ["gzip", "deflate", "zstd"].enumerated() {
            server.route("/\(index)", OriginResponse(headers: [("Content-Encoding", coding)], body: body))
            let error = try await makeDownloader().failure(server.url("/\(index)"))
            #expect(error?.code == .badImageData && error?.tries == 1, "\(coding)")
        }
    }

    @Test("The frames of an upload come off, also where their bytes alone keep to the limit")
    func framed() async throws {
        let server = try OriginServer()
        server.setFallback { [body] _ in
            OriginResponse(headers: [("Content-Encoding", "aws-chunked")], body: awsChunked(body))
        }
        server.route(
            "/dripped",
            OriginResponse(
                headers: [("Content-Encoding", "aws-chunked")], body: awsChunked(body), framing: .chunked(size: 1)))
        let exact = try makeDownloader { $0.maxBodyBytes = body.count }
        #expect(try await exact.download(server.url("/")).body.bytes == body)
        #expect(try await exact.download(server.url("/dripped")).body.bytes == body)
        let less = try makeDownloader { $0.maxBodyBytes = body.count - 1 }
        #expect(await less.failure(server.url("/"))?.code == .tooLarge)
        // Without frames the announced length is that of the image.
        server.route("/plain", OriginResponse(body: body))
        #expect(await less.failure(server.url("/plain"))?.code == .tooLarge)
        #expect(try await exact.download(server.url("/plain")).body.bytes == body)
    }

    /// A small body in frames and packed, with what its Content-Encoding may be.
    private static let packed: [(String, [String], [UInt8])] = {
        let body = pseudoImage(5000)
        let both = ["aws-chunked, gzip", "gzip,aws-chunked", "AWS-Chunked , x-GZIP, binary"]
        return [
            ("frames in gzip", both, gzip(awsChunked(body))), ("gzip in frames", both, awsChunked(gzip(body))),
            ("both", both, awsChunked(gzip(awsChunked(body)))), ("gzip alone", both + ["utf-8, gzip"], gzip(body)),
            ("frames alone", both + ["aws-chunked"], awsChunked(body)), ("neither", both + ["binary, gzip"], body),
            ("gzip in gzip", ["gzip, aws-chunked, gzip"], gzip(gzip(body))),
            ("zlib in frames", ["deflate, aws-chunked"], awsChunked(zlib(body))),
        ]
    }()

    @Test("Frames and gzip come off in whatever order they are there, and the limit counts what is inside")
    func packedAndFramed() async throws {
        let server = try OriginServer()
        let body = pseudoImage(5000)
        let exact = try makeDownloader { $0.maxBodyBytes = body.count }
        let less = try makeDownloader { $0.maxBodyBytes = body.count - 1 }
        for (index, (name, codings, sent)) in Self.packed.enumerated() {
            for (number, coding) in codings.enumerated() {
                let path = "/\(index)/\(number)"
                let headers = [("Content-Encoding", coding)]
                server.route(path, OriginResponse(headers: headers, body: sent))
                server.route(path + "d", OriginResponse(headers: headers, body: sent, framing: .chunked(size: 1)))
                #expect(try await exact.download(server.url(path)).body.bytes == body, "\(name) \(coding)")
                #expect(try await exact.download(server.url(path + "d")).body.bytes == body, "\(name) \(coding)")
                #expect(await less.failure(server.url(path))?.code == .tooLarge, "\(name) \(coding)")
            }
        }
        let lines = [("Content-Encoding", "aws-chunked"), ("Content-Encoding", "gzip")]
        server.route("/lines", OriginResponse(headers: lines, body: awsChunked(gzip(body))))
        #expect(try await exact.download(server.url("/lines")).body.bytes == body)
    }

    @Test("What is broken or a bomb inside of frames is that")
    func badPacked() async throws {
        let server = try OriginServer()
        let headers = [("Content-Encoding", "aws-chunked, gzip")]
        var broken = gzip(body)
        broken[broken.count - 8] ^= 1
        server.route("/broken", OriginResponse(headers: headers, body: awsChunked(broken)))
        server.route("/frames", OriginResponse(headers: headers, body: gzip(Array("5\r\nabcdefgh".utf8))))
        server.route(
            "/bomb",
            OriginResponse(headers: headers, body: awsChunked(OriginResponse.gzipBomb(inflatingTo: 40 << 20).body)))
        for (path, code, text) in [
            ("/broken", .badImageData, "its gzip coding is broken"),
            ("/frames", .badImageData, "a frame of its aws-chunked coding is broken"),
            ("/bomb", .tooLarge, "20 times"),
        ] as [(String, WebImageError.Code, String)] {
            let error = try await makeDownloader().failure(server.url(path))
            #expect(error?.code == code && error?.message.contains(text) == true, "\(String(describing: error))")
        }
    }

    /// What is left of a body, given whole and byte by byte; nil: a frame is broken.
    private func unframed(_ body: [UInt8], pieces: Int) -> [UInt8]? {
        var (chunks, out) = (AWSChunks(), [UInt8]())
        var start = 0
        while start < body.count {
            let piece = Array(body[start..<min(body.count, start + pieces)])
            start += piece.count
            guard
                piece.withUnsafeBytes({
                    chunks.read($0) {
                        out += $0; return true
                    }
                }) == true
            else { return nil }
        }
        return out
    }

    @Test(
        "Frames are told from bytes",
        arguments: [
            ("3;chunk-signature=ab\r\nxyz\r\n0;chunk-signature=cd\r\n\r\n", "xyz"),
            ("3\r\nxyz\r\nA\r\n0123456789\r\n0\r\nx-amz-checksum-crc32:AAAA\r\n\r\n", "xyz0123456789"),
            ("0;chunk-signature=ab\r\n\r\n", ""), ("3\r\nxyz", "xyz"), ("3\r\nxy", "xy"), ("", ""),
            ("GIF89a", "GIF89a"), ("BM", "BM"), ("3x\r\n", "3x\r\n"),
            ("123456789012345678\r\n", "123456789012345678\r\n"),
            (";\r\n", ";\r\n"), ("3\r\nxyz\r\nBM", nil), ("3\r\nxyzw", nil), ("3\rx", nil),
            ("3\r\nxyz\r\n\(String(repeating: "9", count: 16))\r\n", nil),
            ("3;\(String(repeating: "a", count: 2000))\r\nxyz", nil),
        ] as [(String, String?)])
    func frames(body: String, expected: String?) {
        for pieces in [1, 2, 7, 10_000] {
            #expect(unframed(Array(body.utf8), pieces: pieces) == expected.map { Array($0.utf8) }, "\(pieces)")
        }
    }
}

/// A zlib stream of stored blocks (RFC 1950).
func zlib(_ bytes: [UInt8]) -> [UInt8] {
    var (low, high) = (UInt32(1), UInt32(0))
    for byte in bytes {
        low = (low + UInt32(byte)) % 65_521
        high = (high + low) % 65_521
    }
    let sum = high << 16 | low
    return [0x78, 0x01] + gzip(bytes).dropFirst(10).dropLast(8)
        + [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: sum >> $0) }
}

/// An upload to S3 in frames of 64 KiB.
func awsChunked(_ bytes: [UInt8]) -> [UInt8] {
    let signature = ";chunk-signature=" + String(repeating: "0a", count: 32) + "\r\n"
    var out: [UInt8] = []
    for start in stride(from: 0, to: bytes.count, by: 65_536) {
        let part = bytes[start..<min(bytes.count, start + 65_536)]
        out += Array((String(part.count, radix: 16) + signature).utf8) + part + [13, 10]
    }
    return out + Array(("0" + signature + "\r\n").utf8)
}
