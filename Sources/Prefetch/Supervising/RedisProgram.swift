internal import CLinux
internal import Glibc
internal import WebImage

package struct RedisProgram: Sendable {
    /// The oldest major version that supports the queue's scripts. Its settings have one that older servers refuse
    /// (``PrivateRedis/configurationText``): no such server ever reads the data.
    private static let oldest = 7

    let path: String

    /// Where a package that brings its own redis-server has it: not beside the programs, where it would be everybody's.
    package static let ownFolder = ProgramFolder.path + "../lib/prefetch"

    /// That of this package if it has one, otherwise the first in the folders of `searchPath`.
    package static func path(in searchPath: String, ownFolder: String = RedisProgram.ownFolder) -> String? {
        let folders = [ownFolder] + searchPath.split(separator: ":").map(String.init)
        return folders.filter { $0.hasPrefix("/") }.map { "\($0)/redis-server" }.first { access($0, X_OK) == 0 }
    }

    /// Searches the folders of `searchPath`.
    static func find(in searchPath: String) throws(PrefetchError) -> RedisProgram {
        guard let path = path(in: searchPath) else {
            throw PrefetchError(
                .redisUnavailable, "there is no redis-server in PATH",
                hint:
                    "apt-get install -y redis-server; or use a Redis elsewhere: prefetch-coord submit --redis URL and "
                    + "prefetch-worker"
            )
        }
        return RedisProgram(path: path)
    }

    /// Whether its version, `7.0.15`, is the reason that it did not start. Not asked for before: that takes as long as the start.
    func checkVersion(using children: ChildProcesses) async throws(PrefetchError) {
        let version = try await version(using: children)
        guard let major = Int(version.prefix { $0 != "." }), major >= Self.oldest else {
            throw PrefetchError(
                .redisUnavailable,
                "\(path) is version \(version), too old: the queue's scripts need \(Self.oldest).0 or newer",
                hint: "apt-get install -y redis-server, or name a newer server with --redis")
        }
    }

    private func version(using children: ChildProcesses) async throws(PrefetchError) -> String {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw unusable(String(cString: strerror(errno))) }
        for end in ends { clinux_set_cloexec(end, 1) }
        clinux_set_nonblock(ends[0], 1)
        defer { for end in ends { close(end) } }
        let end: ChildEnd
        do throws(ChildProcesses.StartError) {
            let program = ChildProgram(path: path, arguments: ["--version"], output: ends[1], errors: ends[1])
            end = await (try children.start(program)).wait()
        } catch {
            throw unusable(error.reason)
        }
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = read(ends[0], &bytes, bytes.count)
        let text = String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
        // "Redis server v=7.0.15 sha=00000000:0 malloc=…"
        let word = text.split(separator: " ").first { $0.hasPrefix("v=") }
        guard end == .exited(0), let word else { throw unusable("--version: \(end)") }
        return String(word.dropFirst(2))
    }

    private func unusable(_ reason: String) -> PrefetchError {
        PrefetchError(
            .redisUnavailable, "cannot run \(path): \(reason)", hint: "apt-get install -y --reinstall redis-server")
    }
}
