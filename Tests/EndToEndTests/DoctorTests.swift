import Prefetch
import Redis
import TestSupport
import Testing

@Suite("doctor", .timeLimit(.minutes(5)))
struct DoctorTests {
    /// The lines of a check of this Redis and cache; those that are not well have something to do below them.
    private func examine(
        _ b: RemoteBatch, _ cache: String, _ options: [String] = []
    ) async throws -> (code: Int32, text: String) {
        let doctor = try await b.coord(["doctor", "--cache", cache] + options)
        guard case .exited(let code) = await doctor.wait() else { return (-1, "") }
        #expect(doctor.stderr.isEmpty)
        return (code, doctor.stdout)
    }

    @Test("Where all is well it says so, and leaves nothing behind")
    func well() async throws {
        let b = try await RemoteBatch()
        let (code, text) = try await examine(b, b.folder.path("new"))
        #expect(code == 0, "\(text)")
        let lines = text.split(separator: "\n")
        for start in ["ok    prefetch", "ok    libraries    libcurl/", "ok    redis        7.", "ok    persistence"] {
            #expect(lines.contains { $0.hasPrefix(start) }, "\(start) in\n\(text)")
        }
        #expect(text.contains("/new is not there yet, and can be made") && !text.contains("\nfail"))
        #expect(b.folder.contents() == [])
        let json = try await examine(b, b.folder.path(""), ["--json"])
        #expect(
            json.code == 0 && json.text.hasPrefix(#"{"v":1,"ok":true,"findings":[{"level":"ok","subject":"prefetch""#))
        #expect(b.folder.contents() == [])
    }

    @Test("A Redis that may throw keys away, one without a file, one that is nearly full and one that is away")
    func redis() async throws {
        let b = try RemoteBatch(redis: await RedisServer())
        let cache = b.folder.path("new")
        let connection = b.queue.connection
        let file = try await examine(b, cache)
        #expect(
            file.code == 0 && file.text.contains("warn  persistence")
                && file.text.contains("-> redis-cli CONFIG SET appendonly yes"))
        _ = try await connection.command(["CONFIG", "SET", "maxmemory", "1gb"])
        #expect(try await examine(b, cache).text.contains(" of 1.1 GB"))
        _ = try await connection.command(["CONFIG", "SET", "maxmemory", "200kb"])
        let full = try await examine(b, cache)
        #expect(full.code == 1 && full.text.contains("fail  memory       full: "), "\(full.text)")
        _ = try await connection.command(["CONFIG", "SET", "maxmemory", "0", "maxmemory-policy", "allkeys-lru"])
        let evicting = try await examine(b, cache)
        #expect(evicting.code == 1 && evicting.text.contains("maxmemory-policy is allkeys-lru"))
        #expect(evicting.text.contains("-> redis-cli CONFIG SET maxmemory-policy noeviction"))
        await b.redis.kill9()
        let away = try await examine(b, cache)
        #expect(away.code == 1 && away.text.contains("fail  redis"), "\(away.text)")
    }

    @Test("A cache that is no folder, is open to all or in memory, and too few descriptors")
    func machine() async throws {
        let b = try await RemoteBatch()
        b.folder.write([1], to: "file")
        let file = try await examine(b, b.folder.path("file"))
        #expect(
            file.code == 1 && file.text.contains("/file is not a folder")
                && file.text.contains("-> choose another: --cache DIR"))
        let below = try await examine(b, b.folder.path("file/cache"))
        #expect(below.code == 1 && below.text.contains("cannot be made in"), "\(below.text)")
        let few = try await b.shell(
            "mkdir '\(b.folder.path("open"))' && chmod 777 '\(b.folder.path("open"))' && ulimit -n 512 && exec "
                + b.coordWords("doctor --cache '\(b.folder.path("open"))'"), environment: ["http_proxy": "http://p:1"])
        #expect(await few.wait() == .exited(1))
        #expect(few.stdout.contains("warn  cache        everybody on this machine can write to it"))
        #expect(few.stdout.contains("fail  descriptors  512 for each process"))
        #expect(few.stdout.contains("warn  proxy        http_proxy is set and not used"), "\(few.stdout)")
        let memory = try await b.shell(
            "d=$(mktemp -d -p /dev/shm) && \(b.coordWords("doctor --cache $d")); rmdir $d && echo empty")
        await memory.wait()
        #expect(
            memory.stdout.contains("warn  durability   the cache is on tmpfs") && memory.stdout.hasSuffix("empty\n"))
    }
}
