import Glibc
import Origin
import TestSupport
import Testing
import Threading

@testable import WebImage

/// Each row of docs/HOSTILE.md about what a server sends: the outcome, the number of requests, and that nobody else notices.
@Suite("Hostile servers", .timeLimit(.minutes(5)))
struct HostileServerTests {
    struct Row: Sendable, CustomTestStringConvertible {
        var name: String
        var response: OriginResponse
        var outcome: PrefetchOutcome?
        var requests: Int
        var testDescription: String { name }

        init(_ name: String, _ response: OriginResponse, _ outcome: PrefetchOutcome?, _ requests: Int) {
            (self.name, self.response, self.outcome, self.requests) = (name, response, outcome, requests)
        }
    }

    private static let limit = 1 << 20
    private static let picture = GeneratedImage.jpeg(seed: 5, width: 640, height: 480)
    private static let jpeg = [("Content-Type", "image/jpeg")]

    private static func encoded(_ coding: String, _ body: [UInt8]) -> OriginResponse {
        OriginResponse(headers: jpeg + [("Content-Encoding", coding)], body: body)
    }

    static let rows = [
        // Slow ones.
        Row("slow-loris header", .init(body: picture, fault: .dripHeader(bytes: 1, seconds: 0.05)), .timeout, 1),
        Row("slow-loris body", .init(body: picture, fault: .drip(bytes: 1, seconds: 0.05)), .timeout, 1),
        Row("accepted and never answered", .init(body: picture, fault: .stallBeforeHeader), .timeout, 2),
        Row("silent in the body", .init(body: picture, fault: .stall(after: 1000)), .timeout, 2),
        // Endless and lying ones.
        Row("endless chunked body", .init(body: picture, framing: .chunked(size: 9000), fault: .endless), .tooLarge, 1),
        Row("10 TB announced", .init(body: picture, framing: .announced("10000000000000")), .tooLarge, 1),
        Row("negative length", .init(body: picture, framing: .announced("-1"), closesConnection: true), .truncated, 1),
        Row(
            "two different lengths",
            .init(body: picture, framing: .announcedTwice("5", "900000"), closesConnection: true), .truncated, 2),
        Row(
            "shorter than announced", .init(body: picture, framing: .announced("900000"), closesConnection: true),
            .truncated, 2),
        Row(
            "closed in a chunk", .init(body: picture, framing: .chunked(size: 999), fault: .truncated(after: 1500)),
            .truncated, 2),
        Row("reset in the body", .init(body: picture, fault: .reset(after: 1500)), .truncated, 2),
        Row(
            "HTTP/1.0 cut in half",
            .init(body: picture, framing: .untilClose, fault: .truncated(after: picture.count / 2)), .truncated, 2),
        // Compressed ones, which nobody asked for.
        Row("gzip of an image", encoded("gzip", gzip(picture)), nil, 1),
        Row("gzip of gzip of an image", encoded("gzip, gzip", gzip(gzip(picture))), nil, 1),
        Row("40 MB gzip bomb of zeros", .gzipBomb(inflatingTo: 40 << 20), .badImage, 1),
        Row("an image that says it is gzip", encoded("gzip", picture), .badImage, 1),
        Row("an unknown encoding", encoded("UTF-8", picture), nil, 1),
        Row("frames of an upload", encoded("aws-chunked", awsChunked(picture)), nil, 1),
        Row("a page in an unknown encoding", encoded("UTF-8", Array("<p>Sorry</p>".utf8)), .badImage, 1),
        // No HTTP.
        Row("20,000 headers", .init(body: picture, fault: .headerFlood(20_000)), .truncated, 1),
        Row("one 10 MB header", .init(body: picture, fault: .longHeader(10_000_000)), .truncated, 1),
        Row(
            "1 MB status line",
            .init(fault: .raw(Array("HTTP/1.1 200 \(String(repeating: "a", count: 1 << 20))\r\n\r\n".utf8))),
            .truncated, 1),
        Row("HTTP/0.9", .http09(picture), .truncated, 1),
        Row("garbage", .init(fault: .raw(pseudoImage(4000))), .truncated, 1),
        Row("1xx flood", .init(body: picture, fault: .informationalFlood(1000)), .truncated, 1),
        Row("closed without an answer", .init(fault: .closeBeforeHeader), .truncated, 2),
        Row("reset without an answer", .init(fault: .resetBeforeHeader), .truncated, 2),
        Row("cut in the header", .init(fault: .raw(Array("HTTP/1.1 200 OK\r\nContent-Le".utf8))), .truncated, 2),
        // Redirects.
        Row("redirect loop", .redirect(to: "?"), .httpError, 1),
        Row("redirect to ftp", .redirect(to: "ftp://127.0.0.1/"), .refused, 1),
        Row("redirect to file", .redirect(to: "file:///etc/passwd"), .refused, 1),
        Row("redirect to gopher", .redirect(to: "gopher://127.0.0.1:6379/_FLUSHALL"), .refused, 1),
        Row("redirect to a private address", .redirect(to: "http://10.0.0.1/"), .refused, 1),
        Row("redirect to the metadata address", .redirect(to: "http://169.254.169.254/latest/meta-data"), .refused, 1),
        Row("redirect to no place", .init(status: 302), .httpError, 1),
        // Bodies that are no image.
        Row("a page", .init(headers: jpeg, body: Array("<!DOCTYPE html><p>Sorry</p>".utf8)), .badImage, 1),
        Row("empty body", .init(headers: jpeg), .badImage, 1),
        Row("202 with an empty body", .init(status: 202, headers: jpeg), .httpError, 1),
        Row("204 without a body", .init(status: 204), .badImage, 1),
        Row(
            "text", .init(headers: [("Content-Type", "image/png")], body: Array("no picture at all".utf8)), .badImage, 1
        ),
        Row(
            "SVG",
            .init(
                headers: [("Content-Type", "image/svg+xml")],
                body: Array("<svg xmlns=\"http://www.w3.org/2000/svg\"/>".utf8)), .unsupported, 1),
        Row("a JPEG called PNG", .init(headers: [("Content-Type", "image/png")], body: picture), nil, 1),
        Row("a picture of one pixel", .init(body: GeneratedImage.png(seed: 1, width: 1, height: 1)), nil, 1),
    ]

    @Test("Each row ends with its outcome, in time, and the other transfers do not notice", arguments: rows)
    func row(_ row: Row) async throws {
        let fixture = try ManagerFixture()
        fixture.origin.setFallback { _ in row.response }
        let good = try OriginServer()
        good.setFallback { _ in OriginResponse(body: Self.picture) }
        // Only where the end is one of time is there little of it: a busy machine is slow, too.
        let isSlow = row.outcome == .timeout
        let manager = try fixture.manager(downloads: {
            $0.maxConcurrentDownloads = 4
            $0.maxBodyBytes = Self.limit
            $0.downloadTimeout = isSlow ? 1.5 : 50
            $0.stalledAfter = 0.1
            $0.lowSpeedTime = isSlow ? 2 : 50
            $0.maxTries = 2
        })
        let began = ContinuousClock.now
        let before = residentBytes()
        let error = try await withThrowingTaskGroup(of: Void.self, returning: WebImageError?.self) { group in
            for index in 0..<20 { group.addTask { _ = try await manager.loadImage(with: good.url("/\(index).jpg")) } }
            let error = await manager.failure(fixture.origin.url("/hostile.jpg"))
            try await group.waitForAll()
            return error
        }
        #expect(error?.outcome == row.outcome, "\(String(describing: error))")
        let hops = row.name == "redirect loop" ? 11 : row.requests
        #expect(fixture.origin.requestCount() == hops, "\(String(describing: error))")
        #expect(good.requestCount() == 20 || isSlow)
        #expect(ContinuousClock.now - began < .seconds(45))
        #expect(residentBytes() - before < 64 << 20)
        // What it costs, in bytes that are taken and in processor time of the thread that takes them, the twenty others included.
        let work = await manager.downloader.activity.work
        #expect(work.bytes <= 20 * Self.picture.count + row.requests * (Self.limit + 1 << 16), "\(work.bytes) bytes")
        #expect(manager.downloader.processorTime < .seconds(2), "\(manager.downloader.processorTime)")
        let kept = manager.cache.disk.existingPath(forKey: fixture.origin.url("/hostile.jpg")) != nil
        #expect(kept == (row.outcome == nil))
        #expect(await manager.downloader.currentDownloadCount == 0)
    }

    @Test("Every status has its outcome, and only those that may heal are asked for again")
    func statuses() async throws {
        let fixture = try ManagerFixture()
        fixture.origin.setFallback { request in
            OriginResponse(status: Int(request.path.dropFirst()) ?? 500, headers: Self.jpeg)
        }
        let manager = try fixture.manager(policy: .none, downloads: { $0.maxTries = 2 })
        let all = [300, 304, 305, 306] + Array(400...452) + Array(500...530) + [599, 600, 999]
        for status in all {
            let error = try #require(await manager.failure(fixture.origin.url("/\(status)")))
            #expect(error.outcome == .httpError && error.httpStatus == status, "\(status): \(error)")
            let isAskedAgain = [408, 425, 429].contains(status) || status >= 500
            #expect(fixture.origin.requestCount("/\(status)") == (isAskedAgain ? 2 : 1), "\(status)")
        }
    }

    @Test("64 slow-loris connections cost other transfers less than half of their rate")
    func slowLorisBesideGood() async throws {
        let (bad, good) = (try OriginServer(), try OriginServer())
        bad.setFallback { _ in OriginResponse(body: Self.picture, fault: .drip(bytes: 1, seconds: 0.05)) }
        good.setFallback { _ in OriginResponse(body: [1, 2, 3]) }
        func seconds(_ downloader: ImageDownloader, _ name: String) async throws -> Double {
            let began = MonotonicClock.now
            try await withThrowingTaskGroup(of: Void.self) { group in
                for index in 0..<1000 {
                    group.addTask {
                        _ = try await downloader.download(good.url("/\(name)/\(index)"), options: .uninspected)
                    }
                }
                try await group.waitForAll()
            }
            return MonotonicClock.now - began
        }
        let downloader = try makeDownloader {
            $0.maxConcurrentDownloads = 96
            $0.lowSpeedTime = 50
        }
        var ratios: [Double] = []
        // The best of three: other programs on the machine disturb one or the other.
        for round in 0..<3 where ratios.allSatisfy({ $0 >= 2 }) {
            let alone = try await seconds(downloader, "alone\(round)")
            let slow = (0..<64).map { index in Task { _ = await downloader.failure(bad.url("/\(round)/\(index)")) } }
            await bad.waitForRequests(64 * (round + 1))
            ratios.append(try await seconds(downloader, "beside\(round)") / alone)
            for task in slow { task.cancel() }
            for task in slow { await task.value }
        }
        #expect(ratios.min() ?? 9 < 2, "\(ratios)")
    }

    @Test("An address that drops every packet is a timeout, and one that refuses is no connection")
    func noConnection() async throws {
        let full = try FullPort()
        let downloader = try makeDownloader {
            $0.connectTimeout = 0.5
            $0.maxTries = 1
        }
        #expect(await downloader.failure("http://127.0.0.1:\(full.port)/")?.outcome == .timeout)
        let closed = try ClosedPort()
        #expect(await downloader.failure("http://127.0.0.1:\(closed.port)/")?.outcome == .connect)
        #expect(downloader.processorTime < .milliseconds(500), "\(downloader.processorTime)")
    }

    @Test("Who waits for a connection gives its slot back sooner than who waits for a byte")
    func connectingIsStalled() async throws {
        let full = try FullPort()
        let (silent, good) = (try OriginServer(), try OriginServer())
        silent.setFallback { _ in OriginResponse(fault: .stallBeforeHeader) }
        good.setFallback { _ in OriginResponse(body: [1]) }
        let downloader = try makeDownloader {
            $0.maxConcurrentDownloads = 2
            $0.maxStalledDownloads = 1
            $0.stalledAfter = 20
            $0.connectTimeout = 55
        }
        let urls = [silent.url("/"), "http://127.0.0.1:\(full.port)/"]
        let tasks = urls.map { url in Task { await downloader.failure(url) } }
        await silent.waitForRequests(1)
        // Both slots are taken until the one without a connection is stalled.
        try await until {
            await downloader.states(of: Set(urls)).count { [.transferring, .stalled].contains($0.value.phase) } == 2
        }
        _ = try await downloader.download(good.url("/"), options: .uninspected)
        let states = await downloader.states(of: Set(urls))
        #expect(states[urls[0]]?.phase == .transferring && states[urls[1]]?.phase == .stalled, "\(states)")
        for task in tasks { task.cancel() }
        for task in tasks { #expect(await task.value?.code == .cancelled) }
    }

    private func residentBytes() -> Int {
        guard let file = fopen("/proc/self/statm", "r") else { return 0 }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 200)
        guard fgets(&line, 200, file) != nil else { return 0 }
        let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let fields = text.split(separator: " ")
        return fields.count > 1 ? (Int(fields[1]) ?? 0) * 4096 : 0
    }
}

/// A gzip stream of stored blocks (RFC 1951, section 3.2.4; RFC 1952).
func gzip(_ bytes: [UInt8]) -> [UInt8] {
    var out: [UInt8] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]
    var start = 0
    repeat {
        let count = min(65_535, bytes.count - start)
        out.append(start + count == bytes.count ? 1 : 0)
        for value in [UInt16(count), ~UInt16(count)] { out += [UInt8(value & 255), UInt8(value >> 8)] }
        out += bytes[start..<start + count]
        start += count
    } while start < bytes.count
    var crc: UInt32 = 0xffff_ffff
    for byte in bytes {
        crc ^= UInt32(byte)
        for _ in 0..<8 { crc = crc & 1 == 1 ? 0xedb8_8320 ^ (crc >> 1) : crc >> 1 }
    }
    for word in [~crc, UInt32(bytes.count)] {
        for shift in [0, 8, 16, 24] as [UInt32] { out.append(UInt8(truncatingIfNeeded: word >> shift)) }
    }
    return out
}
