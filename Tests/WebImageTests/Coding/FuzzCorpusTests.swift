import CFuzzChild
import CImageCodec
import Foundation
import Testing

@testable import WebImage

/// The inputs that fuzzing has kept, each of which reaches code of its own: nothing fails, and verdicts agree.
@Suite("Inputs of the fuzz targets", .timeLimit(.minutes(2)))
struct FuzzCorpusTests {
    private static func inputs(_ target: String) throws -> [(name: String, bytes: [UInt8])] {
        let file = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../Fuzz/corpus/\(target).txt").standardized
        return try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map { line in
            let parts = line.split(separator: " ", omittingEmptySubsequences: false)
            return ("\(target)/\(parts[0])", Array(try #require(Data(base64Encoded: String(parts[1])))))
        }
    }

    /// Nil: there is no such task.
    private func status(
        _ format: image_codec_format, _ task: image_codec_task, _ bytes: [UInt8],
        proof: image_codec_proof = IMAGE_CODEC_PROOF_OPEN
    ) -> UInt32? {
        var limits = ImageCoder.Limits()
        limits.maxPixels = 1 << 22
        limits.maxMemory = 64 << 20
        var result = image_codec_result()
        return bytes.withUnsafeBufferPointer { bytes in
            var request = image_codec_request()
            (request.format, request.task, request.frames) = (Int32(format.rawValue), Int32(task.rawValue), 4)
            (request.bytes, request.count) = (bytes.baseAddress, bytes.count)
            request.limits = ImageCodec(limits: limits).bounds
            request.proof = Int32(proof.rawValue)
            guard image_codec_has_task(&request) else { return nil }
            image_codec_run(&request, &result)
            defer { image_codec_release_result(&result) }
            #expect(result.warning_count <= IMAGE_CODEC_WARNINGS)
            return UInt32(bitPattern: result.status)
        }
    }

    @Test(
        "Own readers of images come to a verdict, and to one that fits the others",
        arguments: [
            ("jpeg", IMAGE_CODEC_JPEG), ("png", IMAGE_CODEC_PNG), ("gif", IMAGE_CODEC_GIF), ("avif", IMAGE_CODEC_AVIF),
        ])
    func images(_ target: String, _ format: image_codec_format) throws {
        let inputs = try Self.inputs(target)
        #expect(inputs.count > 1)
        for (name, bytes) in inputs {
            let header = status(format, IMAGE_CODEC_HEADER, bytes)
            guard format != IMAGE_CODEC_AVIF else { continue }
            guard status(format, IMAGE_CODEC_STRUCTURE, bytes) == IMAGE_CODEC_WHOLE.rawValue else { continue }
            #expect(header == IMAGE_CODEC_WHOLE.rawValue, "\(name)")
            let proof = status(format, IMAGE_CODEC_PROVE, bytes)
            let check = status(format, IMAGE_CODEC_CHECK, bytes)
            // What is proved, the libraries of the format take.
            if proof == IMAGE_CODEC_WHOLE.rawValue { #expect(check == proof, "\(name)") }
        }
    }

    @Test("What the walks of a progressive JPEG and of a lossy WebP prove, libjpeg and libwebp take")
    func walks() throws {
        for (target, format) in [("progressive", IMAGE_CODEC_JPEG), ("vp8", IMAGE_CODEC_WEBP)] {
            let inputs = try Self.inputs(target)
            #expect(inputs.count > 1)
            var proved = 0
            for (name, bytes) in inputs {
                let file = format == IMAGE_CODEC_WEBP ? WebPSamples.riff(WebPSamples.chunk("VP8 ", bytes)) : bytes
                guard status(format, IMAGE_CODEC_PROVE, file) == IMAGE_CODEC_WHOLE.rawValue else { continue }
                proved += 1
                let isTaken = status(format, IMAGE_CODEC_CHECK, file, proof: IMAGE_CODEC_PROOF_FAILED)
                #expect(isTaken == IMAGE_CODEC_WHOLE.rawValue || !ImageCoder.canDecode(.webp), "\(name)")
            }
            #expect(proved > 0)
        }
    }

    @Test("Prefix codes, orientations and answers of a child")
    func others() throws {
        for (name, bytes) in try Self.inputs("vp8l") where bytes.count > 4 {
            var steps: UInt64 = 0
            let size = PixelSize(
                width: 1 + Int(bytes[0]) + Int(bytes[1] & 63) << 8, height: 1 + Int(bytes[2]) + Int(bytes[3] & 63) << 8)
            _ = bytes[4...].withUnsafeBytes { ImageCodec.tableMemory(lossless: $0, size, steps: &steps) }
            #expect(steps < 500_000 + 40 * UInt64(bytes.count), "\(name)")
        }
        for (name, bytes) in try Self.inputs("exif") {
            let orientation = bytes.withUnsafeBytes { ImageCodec.orientation(ofEXIF: $0) }
            #expect((1...8).contains(orientation.rawValue), "\(name)")
        }
        for (name, bytes) in try Self.inputs("answer") where bytes.count > 16 {
            var call = codec_call()
            (call.operation, call.number, call.room) = (CODEC_RUN.rawValue, 1, 1 << 20)
            var answer = codec_answer()
            withUnsafeMutableBytes(of: &answer) { $0.copyBytes(from: bytes[16...].prefix($0.count)) }
            if codec_answer_is_possible(&call, &answer) { #expect(answer.pixels <= call.room, "\(name)") }
        }
    }

    @Test("A child answers what a program that is an attacker's asks, or does not, and stays within its memory")
    func child() throws {
        let inputs = try Self.inputs("child")
        #expect(inputs.count > 1)
        for (_, bytes) in inputs { #expect(fuzz_child(bytes, bytes.count) == 0) }
    }

    @Test("All inputs together have 100 KB at most")
    func size() throws {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../Fuzz/corpus")
            .standardized
        let targets = try FileManager.default.contentsOfDirectory(atPath: folder.path()).map { $0.dropLast(4) }
        #expect(targets.count > 15)
        let all = try targets.flatMap { try Self.inputs(String($0)) }
        #expect(all.reduce(0) { $0 + $1.bytes.count } <= 100_000)
    }
}
