import Glibc
import Origin
import Prefetch
import TestSupport
import Testing
import WebImage

/// A hit is counted only when its file is on the disk, whoever published it.
@Suite("Hits survive a power cut", .timeLimit(.minutes(5)))
struct HitDurabilityTests {
    /// How many times a worker that ends a batch calls syncfs(2); nil where this machine lets no process trace another.
    private func syncs(
        _ remote: RemoteBatch, _ batch: String, _ urls: [String], _ durability: String
    ) async throws -> Int? {
        try await remote.submit(urls, as: batch, ["--durability", durability])
        let log = remote.folder.path("\(batch).strace")
        let worker = try await ChildProcess(
            "/usr/bin/strace",
            [
                "-f", "-qq", "-o", log, "-e", "trace=syncfs", builtProduct("prefetch-worker"), "--burst", "--quiet",
                "--redis", remote.redis.url, "--cache", remote.folder.path("cache"),
            ])
        let status = await worker.wait()
        guard status == .exited(0) else {
            try #require(worker.stderr.contains("ptrace"), "\(worker.stderr)")
            return nil
        }
        let counts = try #require(try await remote.queue.batches.status(of: batch)).counts
        #expect(counts[.hit] == urls.count, "\(counts)")
        let text = String(decoding: readFile(log) ?? [], as: UTF8.self)
        return text.split(separator: "\n").count { $0.contains("syncfs(") }
    }

    @Test(
        "What another process published and nobody wrote out is written out before it is counted; later runs find it on the disk",
        .enabled(if: access("/usr/bin/strace", X_OK) == 0, "there is no strace"), arguments: ["batch", "file"])
    func hits(durability: String) async throws {
        let remote = try await RemoteBatch()
        let urls = (0..<24).map { "http://127.0.0.1:9/\($0).png" }
        // Its publisher died before it could write anything out.
        let disk = try DiskCache(directory: remote.folder.path("cache"), configuration: .init(durability: .none))
        for (index, url) in urls.enumerated() {
            let body = ImageBody(GeneratedImage.png(seed: UInt64(index), width: 8, height: 8))
            let info = try body.withUnsafeBytes { bytes throws(WebImageError) in
                try ImageCoder().verify(bytes, level: .decode)
            }
            let record = CacheRecord(info, length: body.count, digest: nil, storedAt: 1)
            try disk.images.store(body, for: CacheKey(url), record: record)
        }
        guard let first = try await syncs(remote, "first", urls, durability) else { return }
        #expect(first >= 1)
        // By another process, so that it has only the note of the first to go by.
        #expect(try await syncs(remote, "second", urls, durability) == 0)
        #expect(try await syncs(remote, "third", urls, "none") == 0)
    }
}
