import CLinux
import Glibc
import Origin
import TestSupport
import Testing
import Threading

@testable import WebImage

/// The downloader's thread never waits for a disk: large bodies are written by others.
@Suite("Bodies that are written while they come", .timeLimit(.minutes(5)))
struct BodySpoolTests {
    /// Its disk says when it is asked for a file, and waits for the word.
    private func stalling(_ asked: Latch, _ answers: BlockingLatch) throws -> ImageDownloader {
        try makeDownloader {
            $0.openTemporaryFile = { () throws(WebImageError) in
                asked.open()
                answers.wait()
                return clinux_open("/tmp", clinux_tmpfile_flags(), 0o600)
            }
        }
    }

    @Test("A disk that stalls holds up the one body, with bounded memory, and no other transfer")
    func stall() async throws {
        let server = try OriginServer()
        let body = pseudoImage(24 << 20)
        server.route("/large", OriginResponse(body: body))
        server.route("/small", OriginResponse(body: [1, 2, 3]))
        let (asked, answers) = (Latch(), BlockingLatch())
        let downloader = try stalling(asked, answers)
        let received = Locked(0)
        let large = Task {
            try await downloader.download(server.url("/large")) { count, _ in
                received.withLock { $0 = max($0, count) }
            }
        }
        await asked.wait()
        for _ in 0..<20 { #expect(try await downloader.download(server.url("/small")).body.count == 3) }
        #expect(await downloader.currentDownloadCount == 1)
        #expect(downloader.silence < .seconds(5))
        // What was in memory, what may wait for the disk, and what curl hands out at once.
        let most = 9 << 18
        #expect(received.withLock { $0 } <= most)
        answers.open()
        let image = try await large.value
        #expect(image.body.count == body.count)
        #expect(try image.body.bytes == body)
    }

    @Test("A body that is given up while its disk stalls leaves its thread alone")
    func cancelled() async throws {
        let server = try OriginServer()
        server.route("/large", OriginResponse(body: pseudoImage(8 << 20)))
        server.route("/small", OriginResponse(body: [1]))
        let (asked, answers) = (Latch(), BlockingLatch())
        let downloader = try stalling(asked, answers)
        let large = Task { try await downloader.download(server.url("/large")) }
        await asked.wait()
        large.cancel()
        let error = await #expect(throws: WebImageError.self) { try await large.value }
        #expect(error?.code == .cancelled)
        #expect(try await downloader.download(server.url("/small")).body.count == 1)
        answers.open()
    }

    @Test("The age of the oldest file call is told, whatever came after it")
    func calls() async throws {
        let calls = FileCalls()
        #expect(calls.oldest == .zero)
        let first = calls.begin()
        try await Task.sleep(for: .milliseconds(50))
        let second = calls.begin()
        #expect(calls.oldest >= .milliseconds(40))
        calls.end(second)
        #expect(calls.oldest >= .milliseconds(40))
        calls.end(first)
        #expect(calls.oldest == .zero)
        // A slot that is free is used again.
        let third = calls.begin()
        #expect(calls.oldest < .milliseconds(40))
        calls.end(third)
    }
}
