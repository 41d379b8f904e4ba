import CImageCodec
import CReferenceCodec
import Testing
import WebImage

/// What libavif would take more than linear time, or far more memory than bytes, to read is refused before it does.
@Suite(.timeLimit(.minutes(1)))
struct AVIFBoundTests {
    private let coder = ImageCoder()
    private let unchecked = " (--validate none takes it unchecked)"

    private func refusal(_ level: ValidationLevel, _ change: (inout AVIFSurgery.Additions) -> Void) -> String? {
        var additions = AVIFSurgery.Additions()
        change(&additions)
        let error = coder.failure(AVIFSurgery.still(additions), level: level)
        // Only what is known to be wrong is bad.
        #expect(error?.code != .badImageData || error?.message.contains("--") == false)
        return error?.message
    }

    @Test(arguments: [ValidationLevel.header, .structure, .decode])
    func `items, properties and their boxes are bounded at every level`(level: ValidationLevel) {
        #expect(refusal(level) { _ in } == nil)
        #expect(refusal(level) { $0.items = 255 } == nil)
        #expect(refusal(level) { $0.items = 256 } == "AVIF with more than 256 items\(unchecked)")
        #expect(refusal(level) { $0.properties = 60 } == nil)
        #expect(refusal(level) { $0.properties = 61 } == "AVIF with more than 64 properties\(unchecked)")
        #expect(refusal(level) { $0.padding = 1 << 19 } == nil)
        #expect(
            refusal(level) { $0.padding = 1 << 20 } == "AVIF with more than 1048576 bytes that describe it\(unchecked)")
        #expect(
            refusal(level) { $0.references = 1024 } == "AVIF with more than 1024 references between items\(unchecked)")
        #expect(refusal(level) { $0.parts = 1024 } == "AVIF with more than 1024 parts of items\(unchecked)")
    }

    @Test
    func `a description that is too long is refused before it has arrived`() throws {
        var additions = AVIFSurgery.Additions()
        additions.padding = 1 << 20
        let arrived = Array(AVIFSurgery.still(additions).prefix(100))
        let error = #expect(throws: WebImageError.self) {
            _ = try coder.inspectHeader(arrived)
        }
        #expect(error?.message.contains("1048576 bytes") == true)
    }

    @Test
    func `what is within the bounds is read in little processor time, and what is over them in less`() {
        var most = AVIFSurgery.Additions()
        (most.items, most.properties, most.padding, most.references, most.parts) = (255, 60, 1 << 19, 1000, 700)
        var over = most
        (over.items, over.padding) = (60_000, 1 << 18)
        for additions in [most, over] {
            let bytes = AVIFSurgery.still(additions)
            var result = image_codec_result()
            bytes.withUnsafeBufferPointer { bytes in
                var request = image_codec_request()
                (request.format, request.task) = (Int32(IMAGE_CODEC_AVIF.rawValue), Int32(IMAGE_CODEC_HEADER.rawValue))
                (request.bytes, request.count) = (bytes.baseAddress, bytes.count)
                (request.limits.max_dimension, request.limits.max_pixels) = (1 << 16, 1 << 32)
                request.limits.max_whole_pixels = 1 << 32
                image_codec_run(&request, &result)
            }
            #expect(result.spent < 100_000_000, "\(result.spent) ns")
        }
    }

    @Test
    func `a still image has as many frames as AV1 has layers`() {
        #expect(refusal(.structure) { $0.frames = 4 } == nil)
        for frames in [5, 10, 200] {
            for level in [ValidationLevel.structure, .decode] {
                #expect(refusal(level) { $0.frames = frames } == "AVIF with several images in the data of one")
            }
        }
    }

    @Test(arguments: [HexSamples.gridAVIF, HexSamples.largeAVIF])
    func `the data of an item, a tile of a grid too, are not of a larger image than it says`(file: [UInt8]) throws {
        #expect(coder.failure(file, level: .decode) == nil)
        let place = ChunkSurgery.lastOffset(of: Array("ispe".utf8), in: file) + 8
        for size: [UInt8] in [[0, 0, 0, 64, 0, 0, 0, 128], [0, 0, 0, 128, 0, 0, 0, 64]] {
            var bytes = file
            bytes.replaceSubrange(place..<place + 8, with: size)
            let error = coder.failure(bytes, level: .structure)
            #expect(error?.code == .badImageData && error?.message == "AVIF with data of a larger image than it says")
        }
    }

    @Test
    func `a sample of a sequence has a bounded number of frames`() {
        let file = HexSamples.animatedAVIF
        // The first sample of the first track, moved behind the file and repeated there.
        let sizes = ChunkSurgery.offset(of: Array("stsz".utf8), in: file) + 16
        let offsets = ChunkSurgery.offset(of: Array("stco".utf8), in: file) + 12
        func number(_ place: Int) -> Int { file[place..<place + 4].reduce(0) { $0 << 8 | Int($1) } }
        let first = Array(file[number(offsets)..<number(offsets) + number(sizes)])
        let second = Array(file[number(offsets) + first.count..<number(offsets) + first.count + number(sizes + 4)])
        func bytes(_ times: Int) -> [UInt8] {
            let samples = (0..<times).flatMap { _ in first } + second
            var bytes = file + AVIFSurgery.box("mdat", samples)
            bytes.replaceSubrange(offsets..<offsets + 4, with: ChunkSurgery.bigEndian(file.count + 8))
            bytes.replaceSubrange(sizes..<sizes + 4, with: ChunkSurgery.bigEndian(times * first.count))
            return bytes
        }
        #expect(coder.failure(bytes(1), level: .structure) == nil)
        #expect(coder.failure(bytes(16), level: .structure) == nil)
        #expect(coder.failure(bytes(17), level: .structure)?.message == "AVIF with several images in the data of one")
    }

    @Test
    func `the header says what the boxes say to libavif`() throws {
        let turns = (0...3 as ClosedRange<UInt8>).map { [AVIFSurgery.box("irot", [$0])] }
        let mirrors = [[], [AVIFSurgery.box("imir", [0])], [AVIFSurgery.box("imir", [1])]]
        var files = [HexSamples.avif, HexSamples.animatedAVIF, HexSamples.largeAVIF]
        for turn in turns {
            for mirror in mirrors {
                var additions = AVIFSurgery.Additions()
                additions.own = turn + mirror
                files.append(AVIFSurgery.still(additions))
            }
        }
        var orientations = Set<UInt8>()
        for file in files {
            var header = try coder.verify(file, level: .header), structure = try coder.verify(file, level: .structure)
            orientations.insert(structure.orientation.rawValue)
            // Only the structure counts frames.
            (header.level, structure.level) = (.none, .none)
            (header.frameCount, structure.frameCount) = (1, 1)
            #expect(header == structure)
        }
        #expect(orientations.count == 8)
    }

    @Test(.enabled(if: allocations_can_be_counted(), "a sanitizer has its own malloc"))
    func `a header is read without a library, which would allocate`() {
        let formats: [(Sample, image_codec_format)] = [
            (.baselineJPEG, IMAGE_CODEC_JPEG), (.png, IMAGE_CODEC_PNG), (.gif, IMAGE_CODEC_GIF),
            (.avif, IMAGE_CODEC_AVIF),
            (.animatedAVIF, IMAGE_CODEC_AVIF),
        ]
        for (sample, format) in formats {
            let bytes = sample.bytes
            var result = image_codec_result()
            let allocated = bytes.withUnsafeBufferPointer { bytes in
                var request = image_codec_request()
                (request.format, request.task) = (Int32(format.rawValue), Int32(IMAGE_CODEC_HEADER.rawValue))
                (request.bytes, request.count) = (bytes.baseAddress, bytes.count)
                (request.limits.max_dimension, request.limits.max_pixels) = (1 << 16, 1 << 32)
                request.limits.max_whole_pixels = 1 << 32
                allocations_start()
                image_codec_run(&request, &result)
                return allocations_stop()
            }
            #expect(result.status == IMAGE_CODEC_WHOLE.rawValue && result.width > 0)
            #expect(allocated.total == 0, "\(sample)")
        }
    }
}
