import Glibc
import TestSupport
import Testing

/// What the container stack and the hosts test verify with, without containers.
@Suite("Verification scripts", .timeLimit(.minutes(5)))
struct VerifyTests {
    private func script(_ name: String) -> String {
        var parts = #filePath.split(separator: "/", omittingEmptySubsequences: false)
        parts.removeLast(3)
        return parts.joined(separator: "/") + "/" + name
    }

    @Test("docker/verify passes on a new cache and on a full one, and fails where a file was changed")
    func verify() async throws {
        let remote = try await RemoteBatch()
        let folder = TemporaryDirectory()
        let origin = try await ChildProcess(
            builtProduct("prefetch-origin"), ["misbehave", "--count", "100"])
        try await until { origin.stdout.hasPrefix("http") && origin.stdout.contains("\n") }
        let address = try #require(origin.stdout.split(separator: "\n").first?.split(separator: "/").last)
        let worker = try await ChildProcess(
            builtProduct("prefetch-worker"),
            [
                "--redis", remote.redis.url, "--cache", folder.path("cache"), "--allow-net", "127.0.0.0/8",
                "--connect-to", "demo.prefetch.example:80:\(address)",
                "--connect-to", "busy.prefetch.example:80:\(address)",
                "--connect-to", "closed.prefetch.example:80:127.0.0.1:1",
            ])
        var environment: [String: String] = [:]
        let programs = builtProduct("prefetch-coord").split(separator: "/").dropLast().joined(separator: "/")
        environment["PATH"] = "/\(programs):/usr/bin:/bin"
        environment["PREFETCH_REDIS_URL"] = remote.redis.url
        environment["PREFETCH_CACHE"] = folder.path("cache")
        environment["PREFETCH_DEMO_COUNT"] = "100"
        for _ in 0..<2 {
            let verify = try await ChildProcess("/bin/sh", [script("docker/verify")], environment: environment)
            #expect(await verify.wait() == .exited(0), "\(verify.stderr)")
            #expect(verify.stdout.hasSuffix("every outcome, count and file is as the manifest says\n"))
        }
        // Same length and date, other bytes.
        let image = try #require(
            folder.contents().first { $0.hasPrefix("cache/v1/") && !$0.hasSuffix("/") && $0.hasSuffix(".png") }
                ?? folder.contents().first { $0.hasPrefix("cache/v1/") && !$0.hasSuffix("/") })
        var bytes = try #require(folder.read(image))
        bytes[bytes.count - 1] ^= 1
        folder.write(bytes, to: image)
        let verify = try await ChildProcess("/bin/sh", [script("docker/verify")], environment: environment)
        #expect(await verify.wait() == .exited(1))
        #expect(verify.stderr.contains("verify: "))
        worker.signal(SIGTERM)
        origin.signal(SIGTERM)
        _ = await (worker.wait(), origin.wait())
    }

    /// Whether this process may make network namespaces, and has ip(8).
    private static let canMakeNamespaces =
        getuid() == 0
        && LoopFileSystem.shell("command -v ip >/dev/null && unshare --mount --net --uts true 2>/dev/null")

    @Test("scripts/hosts-test passes with two hosts of two workers", .enabled(if: Self.canMakeNamespaces), .thorough)
    func hosts() async throws {
        let programs = builtProduct("prefetch-coord").split(separator: "/").dropLast().joined(separator: "/")
        var environment: [String: String] = [:]
        environment["BIN"] = "/\(programs)"
        environment["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
        let test = try await ChildProcess(
            "/bin/bash", [script("scripts/hosts-test"), "--count", "300"], environment: environment)
        #expect(await test.wait() == .exited(0), "\(test.stderr)")
        #expect(test.stderr.hasSuffix("everything is in order\n"))
    }
}
