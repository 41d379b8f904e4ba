internal import CLinux
internal import Glibc

struct RedisProgram: Sendable {
    /// The oldest major version that supports the queue's scripts.
    static let oldest = 7

    let path: String
    /// `7.0.15`
    let version: String

    /// Searches the folders of `searchPath` and asks the program for its version.
    static func find(in searchPath: String, using children: ChildProcesses) async throws(PrefetchError) -> RedisProgram
    {
        let folders = searchPath.split(separator: ":").filter { $0.hasPrefix("/") }
        guard
            let path = folders.map({ "\($0)/redis-server" }).first(where: { (path: String) in access(path, X_OK) == 0 })
        else {
            throw PrefetchError(
                .redisUnavailable, "there is no redis-server in PATH",
                hint:
                    "apt-get install -y redis-server; or use a Redis elsewhere: prefetch-coord submit --redis URL and "
                    + "prefetch-worker"
            )
        }
        let version = try await version(of: path, using: children)
        guard let major = Int(version.prefix { $0 != "." }), major >= oldest else {
            throw PrefetchError(
                .redisUnavailable,
                "\(path) is version \(version), too old: the queue's scripts need \(oldest).0 or newer",
                hint: "apt-get install -y redis-server, or name a newer server with --redis")
        }
        return RedisProgram(path: path, version: version)
    }

    private static func version(of path: String, using children: ChildProcesses) async throws(PrefetchError) -> String {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw unusable(path, String(cString: strerror(errno))) }
        for end in ends { clinux_set_cloexec(end, 1) }
        clinux_set_nonblock(ends[0], 1)
        defer { for end in ends { close(end) } }
        let end: ChildEnd
        do throws(ChildProcesses.StartError) {
            let program = ChildProgram(path: path, arguments: ["--version"], output: ends[1], errors: ends[1])
            end = await (try children.start(program)).wait()
        } catch {
            throw unusable(path, error.reason)
        }
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = read(ends[0], &bytes, bytes.count)
        let text = String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
        // "Redis server v=7.0.15 sha=00000000:0 malloc=…"
        let word = text.split(separator: " ").first { $0.hasPrefix("v=") }
        guard end == .exited(0), let word else { throw unusable(path, "--version: \(end)") }
        return String(word.dropFirst(2))
    }

    private static func unusable(_ path: String, _ reason: String) -> PrefetchError {
        PrefetchError(
            .redisUnavailable, "cannot run \(path): \(reason)", hint: "apt-get install -y --reinstall redis-server")
    }
}
