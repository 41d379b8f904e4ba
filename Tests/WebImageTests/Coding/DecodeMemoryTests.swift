import CReferenceCodec
import Glibc
import Origin
import TestSupport
import Testing
import Threading
import WebImage

@Suite("Memory for decoding", .timeLimit(.minutes(5)))
struct DecodeMemoryTests {
    private final class Order: Sendable {
        private let names = Locked<[String]>([])
        func add(_ name: String) { names.withLock { $0.append(name) } }
        var all: [String] { names.withLock { $0 } }
    }

    /// Takes `count` bytes on a thread of its own, which ends as soon as it has them.
    private func ask(_ memory: DecodeMemory, _ count: Int, _ name: String, _ order: Order) async throws {
        let before = memory.waiting
        detach {
            memory.acquire(count)
            order.add(name)
        }
        try await until { memory.waiting == before + 1 || order.all.contains(name) }
    }

    @Test("One that would exceed the limit waits, and those behind it, first come first served")
    func order() async throws {
        let (memory, order) = (DecodeMemory(limit: 100), Order())
        memory.acquire(60)
        try await ask(memory, 60, "large", order)
        try await ask(memory, 10, "small", order)
        #expect(order.all == [] && memory.waiting == 2 && memory.used == 60)
        memory.release(60)
        try await until { order.all.count == 2 }
        #expect(memory.used == 70 && memory.peak == 70)
    }

    @Test("One that needs more than there is runs alone")
    func alone() async throws {
        let (memory, order) = (DecodeMemory(limit: 100), Order())
        memory.acquire(1)
        try await ask(memory, 300, "huge", order)
        try await ask(memory, 1, "small", order)
        #expect(order.all == [])
        memory.release(1)
        try await until { order.all == ["huge"] }
        #expect(memory.used == 300 && memory.waiting == 1)
        memory.release(300)
        try await until { order.all == ["huge", "small"] }
        #expect(memory.used == 1)
    }

    @Test("Eight threads that decode progressive images stay within the limit, and all of them are verified")
    func threads() async throws {
        let image = ChunkSurgery.withEmptyDNL(
            GeneratedImage.jpeg(seed: 7, width: 512, height: 512, progressive: true))
        // About 0.95 MB each with the coefficients of all blocks: two fit, a third does not.
        let memory = DecodeMemory(limit: 2 << 20)
        let (coder, order) = (ImageCoder(memory: memory), Order())
        for number in 0..<8 {
            detach {
                for _ in 0..<8 {
                    let info = try? image.span.withUnsafeBytes { bytes throws(WebImageError) in
                        try coder.verify(bytes, level: .decode)
                    }
                    order.add("\(number) \(info?.width ?? 0)")
                }
            }
        }
        try await until { order.all.count == 64 }
        #expect(order.all.allSatisfy { $0.hasSuffix(" 512") })
        #expect(memory.used == 0 && memory.peak <= memory.limit && memory.peak > memory.limit / 3)
    }

    private static let images: KeyValuePairs<String, [UInt8]> = [
        "small": GeneratedImage.jpeg(seed: 1, width: 16, height: 16),
        "baseline": GeneratedImage.jpeg(seed: 2, width: 1_999, height: 777),
        "wide": GeneratedImage.jpeg(seed: 3, width: 20_000, height: 9),
        "progressive": GeneratedImage.jpeg(seed: 4, width: 1_999, height: 777, progressive: true),
        "wide and progressive": GeneratedImage.jpeg(seed: 5, width: 20_000, height: 9, progressive: true),
        "progressive, by libjpeg": ChunkSurgery.withEmptyDNL(
            GeneratedImage.jpeg(seed: 4, width: 1_999, height: 777, progressive: true)),
        "large and progressive": GeneratedImage.jpeg(seed: 8, width: 3_000, height: 2_400, progressive: true),
        "PNG": GeneratedImage.png(seed: 6, width: 4_000, height: 50),
        "sample": Sample.progressiveJPEG.bytes, "CMYK": Sample.cmykJPEG.bytes,
        "profile": ChunkSurgery.insert(
            ChunkSurgery.pngChunk("iCCP", Array("a\0\0".utf8) + CodecBombTests.zeros(3_000_000)), before: "IDAT",
            in: Sample.png.bytes),
        "calibration": ChunkSurgery.insert(
            ChunkSurgery.pngChunk("pCAL", Array("a\0".utf8) + [UInt8](repeating: 65, count: 1 << 20)), before: "IDAT",
            in: Sample.png.bytes),
        "interlaced": Sample.interlacedPNG.bytes, "16 bits": Sample.rgba16PNG.bytes,
    ]

    @Test(
        "What a decode allocates is at most what it asked for, and not far below it",
        .enabled(if: allocations_can_be_counted()), arguments: images.map(\.key))
    func estimate(name: String) throws {
        let bytes = try #require(Self.images.first { $0.key == name }?.value)
        let memory = DecodeMemory()
        let coder = ImageCoder(memory: memory, sandbox: nil)
        allocations_start()
        let result = Result { () throws(WebImageError) in try coder.verify(bytes, level: .decode) }
        let allocated = allocations_stop()
        _ = try result.get()
        #expect(allocated.peak <= memory.peak)
        #expect(
            memory.peak <= 2 * allocated.peak + (512 << 10) || name == "profile" || name == "calibration",
            "\(allocated.peak) bytes")
    }
}

/// A thread that nobody waits for.
private func detach(_ body: @escaping @Sendable () -> Void) {
    final class Box {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }
    var thread = pthread_t()
    pthread_create(
        &thread, nil,
        { box in
            Unmanaged<Box>.fromOpaque(box!).takeRetainedValue().body()
            return nil
        }, Unmanaged.passRetained(Box(body)).toOpaque())
    pthread_detach(thread)
}
