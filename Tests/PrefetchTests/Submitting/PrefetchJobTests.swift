import Testing

@testable import Prefetch

@Suite("The payload of a job", .timeLimit(.minutes(1)))
struct PrefetchJobTests {
    private static let entries: [PrefetchJob.Entry] = [
        .init(line: 513, url: "https://example.org/a.jpg"), .init(line: 1_000_000_007, url: "http://h/ä b?c=%20"),
        .init(line: 7, url: "!1\\tnot a url", isInvalid: true), .init(line: 8, url: ""),
        .init(line: 9, url: String(repeating: "x", count: 65_536)),
    ]

    @Test("What is encoded is read back", arguments: 1...5)
    func roundTrip(count: Int) throws {
        let job = PrefetchJob(batch: "urls-7f3a12c9.2", base: 512, entries: Array(Self.entries.prefix(count)))
        #expect(PrefetchJob(job.encoded()) == job)
        #expect(job.name == "urls-7f3a12c9.2:512:\(count)")
    }

    @Test("The checksum taken eight bytes at a time is the one of the definition, at every length")
    func checksum() {
        func defined(_ bytes: some Sequence<UInt8>) -> UInt32 {
            var crc: UInt32 = 0xFFFF_FFFF
            for byte in bytes {
                crc ^= UInt32(byte)
                for _ in 0..<8 { crc = crc & 1 == 1 ? 0xEDB8_8320 ^ (crc >> 1) : crc >> 1 }
            }
            return ~crc
        }
        let bytes = (0..<70).map { UInt8(truncatingIfNeeded: $0 * 151 + 3) }
        for count in 0...60 {
            for start in 0..<9 {
                #expect(
                    UInt32(CRC32.hex(of: bytes[start..<(start + count)]), radix: 16)
                        == defined(bytes[start..<(start + count)]))
            }
        }
    }

    @Test("It is text that redis-cli shows, with zlib's CRC-32")
    func text() {
        let job = PrefetchJob(
            batch: "b", base: 0,
            entries: [.init(line: 1, url: "http://h/1"), .init(line: 3, url: "x", isInvalid: true)])
        let text = String(decoding: job.encoded(), as: UTF8.self)
        #expect(text == "prefetch-job 1 b:0:2 \(CRC32.hex(of: "1\thttp://h/1\n!3\tx\n".utf8))\n1\thttp://h/1\n!3\tx\n")
        #expect(CRC32.hex(of: "123456789".utf8) == "cbf43926")
        #expect(CRC32.hex(of: "".utf8) == "00000000")
    }

    @Test("The largest job is read back, one more URL is refused")
    func largest() {
        let entry = PrefetchJob.Entry(line: 1, url: "http://h/")
        let full = PrefetchJob(batch: "b", base: 0, entries: Array(repeating: entry, count: 256))
        #expect(PrefetchJob(full.encoded()) == full)
        #expect(PrefetchJob(PrefetchJob(batch: "b", base: 0, entries: full.entries + [entry]).encoded()) == nil)
        #expect(PrefetchJob(PrefetchJob(batch: "b", base: 0, entries: []).encoded()) == nil)
    }

    @Test("Every cut and every flipped bit is noticed")
    func damage() {
        let whole = PrefetchJob(batch: "b", base: 3, entries: Array(Self.entries.prefix(3)))
        let payload = whole.encoded()
        for length in 0..<payload.count {
            #expect(PrefetchJob(Array(payload.prefix(length))) == nil, "cut to \(length)")
        }
        #expect(PrefetchJob(payload + [10]) == nil && PrefetchJob(payload + payload) == nil)
        let body = (payload.firstIndex(of: 10) ?? 0) + 1
        for index in body..<payload.count {
            for bit in 0..<8 {
                var damaged = payload
                damaged[index] ^= 1 << bit
                #expect(PrefetchJob(damaged) == nil, "bit \(bit) of byte \(index)")
            }
        }
    }

    @Test(
        "A head that is none is refused",
        arguments: [
            "", "\n", "hello", "hello\n", "prefetch-job 2 b:0:1 %\n", "prefetch-job 1 b:0 %\n",
            "prefetch-job 1 b:0:1:1 %\n",
            "prefetch-job 1 b:-1:1 %\n", "prefetch-job 1 b:0:0 %\n", "prefetch-job 1 b:0:2 %\n",
            "prefetch-job 1 b:0:257 %\n",
            "prefetch-job 1 b:99999999999999999999:1 %\n", "prefetch-job 1 b::1 %\n", "prefetch-job 1 b:0:1\n",
        ])
    func heads(head: String) {
        let body = "1\thttp://h/\n"
        func job(_ head: String) -> PrefetchJob? {
            PrefetchJob(Array((head.replacing("%", with: CRC32.hex(of: body.utf8)) + body).utf8))
        }
        #expect(job(head) == nil)
        #expect(job("prefetch-job 1 b:0:1 %\n")?.entries == [.init(line: 1, url: "http://h/")])
    }

    @Test(
        "Lines that are none are refused",
        arguments: ["http://h/\n", "x\thttp://h/\n", "-1\th\n", "\th\n", "1\th", "!\th\n"])
    func lines(body: String) {
        let job = PrefetchJob(Array("prefetch-job 1 b:0:1 \(CRC32.hex(of: body.utf8))\n\(body)".utf8))
        #expect(job == (body == "1\th" ? PrefetchJob(batch: "b", base: 0, entries: [.init(line: 1, url: "h")]) : nil))
    }

    @Test("The parts of a job are its URLs in order", arguments: [(1, 8), (2, 8), (9, 8), (256, 8), (5, 2), (7, 1)])
    func split(count: Int, parts: Int) {
        let job = PrefetchJob(
            batch: "b", base: 40, entries: (0..<count).map { .init(line: $0, url: "http://h/\($0)") })
        let split = job.split(into: parts)
        #expect(split.count <= parts && !split.isEmpty)
        #expect(split.flatMap(\.entries) == job.entries)
        var base = 40
        for part in split {
            #expect(part.base == base && part.batch == "b" && !part.entries.isEmpty)
            base += part.entries.count
        }
    }
}
