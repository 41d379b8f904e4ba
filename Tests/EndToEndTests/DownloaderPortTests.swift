import Glibc
import Origin
import Prefetch
import TestSupport
import Testing
import WebImage

/// Tests of SDWebImage 5.21 (`SDWebImageDownloaderTests`) that are about a whole process, under their names.
@Suite("SDWebImageDownloaderTests over processes", .timeLimit(.minutes(5)))
struct DownloaderPortTests {
    /// Its application that enters the background is a worker that is told to leave.
    @Test("SDWebImageDownloaderTests 13 ThatDownloadCanContinueWhenTheAppEntersBackground")
    func background() async throws {
        let b = try await RemoteBatch()
        let origin = try OriginServer()
        for path in ["/plain.jpg", "/lasting.jpg"] {
            let bytes = GeneratedImage.jpeg(seed: 1, width: 50, height: 50)
            origin.route(path, OriginResponse(body: bytes, fault: .stall(after: 10)))
        }
        let urls = ["/plain.jpg", "/lasting.jpg"].map { origin.url($0) }
        let longTimeout = ["--timeout", "100s"]
        try await b.submit([urls[0]], as: "plain", longTimeout)
        try await b.submit([urls[1]], as: "lasting", longTimeout + ["--options", "continueInBackground"])
        let worker = try await ChildProcess(
            builtProduct("prefetch-worker"),
            [
                "--redis", b.redis.url, "--cache", b.folder.path("cache"), "--allow-net", "127.0.0.0/8",
                "--drain-timeout", "100ms",
            ])
        await origin.waitForRequests(2)
        worker.signal(SIGTERM)
        // Without the option a transfer ends with the time it was given, with it it goes on.
        try await until { origin.openConnectionCount == 1 }
        #expect(worker.isRunning)
        origin.release("/lasting.jpg")
        #expect(await worker.wait() == .exited(0), "\(worker.stderr)")
        #expect(try await b.queue.batches.status(of: "lasting")?.counts[.downloaded] == 1)
        #expect(try await b.queue.batches.status(of: "plain")?.counts.finished == 0)
        let disk = try DiskCache(directory: b.folder.path("cache"))
        #expect(disk.existingPath(forKey: urls[1]) != nil && disk.existingPath(forKey: urls[0]) == nil)
    }
}
