import Testing

@testable import Prefetch
@testable import Queue

@Suite("The payload of a job", .timeLimit(.minutes(5)))
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

    /// A payload of which the body's lines are given, with the right checksum.
    private static func payload(_ count: Int, _ body: [UInt8], form: Int = 1) -> [UInt8] {
        Array("prefetch-job \(form) b:0:\(count) \(CRC32.hex(of: body))\n".utf8) + body
    }

    @Test("Few bytes that stand for many are no job: no URL is longer than a line, nor all of them than a MiB")
    func bomb() {
        let line = { (text: String) in Array("\(text)\n".utf8) }
        let long = String(repeating: "x", count: 60_000)
        // Each has the 60,000 bytes of the one before.
        let repeated = Self.payload(256, line("1\thttp://h/\(long)") + (1..<256).flatMap { _ in line("+60009\t") })
        #expect(repeated.count < 70_000 && PrefetchJob(repeated) == nil)
        // Each is a byte longer than the one before.
        let longer = Self.payload(40, line("1\thttp://h/") + (1..<40).flatMap { _ in line("+5,4\tx") })
        #expect(PrefetchJob(longer) != nil)
        #expect(PrefetchJob(Self.payload(1, line("1\thttp://h/" + String(repeating: "x", count: 65_528)))) == nil)
        // Ten million lines under a name that says 256.
        let many = Self.payload(256, Array(repeating: line("1\th"), count: 100_000).flatMap { $0 })
        #expect(PrefetchJob(many) == nil)
        // What is pushed by those who keep to the rule is read.
        let most = (0..<4).map { PrefetchJob.Entry(line: $0 + 1, url: "http://h/\(long)\($0)") }
        let job = PrefetchJob(batch: "b", base: 0, entries: most)
        #expect(PrefetchJob(job.encoded()) == job)
    }

    @Test("Settings of a URL ask for no more headers than a list may")
    func headers() {
        let line = { (count: Int, size: Int) in
            let headers = (0..<count).map { "\"X-\($0)\":\"\(String(repeating: "v", count: size))\"" }
            return Array("1\thttp://h/\t{\"headers\":{\(headers.joined(separator: ","))}}\n".utf8)
        }
        #expect(PrefetchJob(Self.payload(1, line(64, 9), form: 2))?.entries[0].settings?.headers.count == 64)
        for (count, size) in [(65, 9), (100_000, 0), (2, 8_193)] {
            #expect(PrefetchJob(Self.payload(1, line(count, size), form: 2)) == nil, "\(count)")
        }
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
            "", "\n", "hello", "hello\n", "prefetch-job 3 b:0:1 %\n", "prefetch-job 1 b:0 %\n",
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
        arguments: [
            "http://h/\n", "x\thttp://h/\n", "-1\th\n", "\th\n", "1\th", "!\th\n", "+0\th\n", "+\th\n",
            "1\tabc\n+4\td\n", "!1\tabc\n+2\td\n", "1\tabc\n+-1\td\n", "1\tabc\n!+1\td\n",
            "1\tabc\n+2,2\td\n", "1\tabc\n+2,\td\n", "1\tabc\n+2,-1\td\n", "1\tabc\n+1,1,1\td\n",
            "1\tabc\n+1,999999999999999999\td\n", "1,1\tabc\n",
        ])
    func lines(body: String) {
        let count = body.count { $0 == "\n" }
        let job = PrefetchJob(Array("prefetch-job 1 b:0:\(max(1, count)) \(CRC32.hex(of: body.utf8))\n\(body)".utf8))
        #expect(job == nil)
    }

    @Test("What a URL shares with the one before is not written again")
    func shared() {
        let urls = ["http://h/a/1.jpg", "http://h/a/2.jpg", "http://h/a/2.jpg?x", "ftp://h/", "http://ä/", "http://ö/"]
        var entries = urls.enumerated().map { PrefetchJob.Entry(line: $0 + 1, url: $1) }
        entries.append(.init(line: 9, url: "http://ö/9"))
        entries.append(.init(line: 10, url: "http://ö/ 9", isInvalid: true))
        entries.append(.init(line: 11, url: "http://ö/ 9"))
        let job = PrefetchJob(batch: "b", base: 0, entries: entries)
        let body = """
            1\thttp://h/a/1.jpg
            +11,4\t2
            +16\t?x
            4\tftp://h/
            5\thttp://ä/

            """
        let bytes = job.encoded()
        let first = (bytes.firstIndex(of: 10) ?? 0) + 1
        #expect(String(decoding: bytes[first...].prefix(body.utf8.count), as: UTF8.self) == body)
        // Half a character is shared: bytes, not text.
        #expect(bytes[(first + body.utf8.count)...].starts(with: Array("+8\t".utf8) + [0xB6, 0x2F, 0x0A]))
        #expect(
            String(decoding: bytes.suffix(48), as: UTF8.self).hasSuffix(
                "9\thttp://ö/9\n!10\thttp://ö/ 9\n11\thttp://ö/ 9\n"))
        #expect(PrefetchJob(bytes) == job)
    }

    @Test("Whatever the URLs share, they are read back", arguments: [1, 2, 3, 4, 5, 6, 7, 8])
    func anyURLs(seed: UInt64) {
        print("seed \(seed)")
        var random = seed &* 0x9E37_79B9_7F4A_7C15
        func next(_ bound: Int) -> Int {
            random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(random >> 33) % bound
        }
        var (line, entries): (Int, [PrefetchJob.Entry]) = (0, [])
        for _ in 0..<256 {
            line += 1 + (next(8) == 0 ? next(5) : 0)
            let url = String((0..<next(12)).map { _ in ["a", "b", "é", "🦉", "+", "!"][next(6)] as Character })
            entries.append(.init(line: line, url: url, isInvalid: next(9) == 0))
        }
        let job = PrefetchJob(batch: "b", base: 0, entries: entries)
        #expect(PrefetchJob(job.encoded()) == job)
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
