/// The facts from INFO that decide whether a server can host a queue.
package struct RedisServerFacts: Sendable, Equatable {
    package var version: String
    /// Default `noeviction`.
    package var maxmemoryPolicy: String
    /// Bytes; 0 means no limit.
    package var maxmemory: Int
    package var usedMemory: Int
    package var isAOFEnabled: Bool
    package var isLoading: Bool
    package var isCluster: Bool

    /// Parses the text of INFO; missing fields get harmless values.
    package init(info: String) {
        (version, maxmemoryPolicy, maxmemory, usedMemory) = ("0", "noeviction", 0, 0)
        (isAOFEnabled, isLoading, isCluster) = (false, false, false)
        // By bytes: it has 200 lines, and each command reads them.
        for line in info.utf8.split(whereSeparator: { $0 == UInt8(ascii: "\r") || $0 == UInt8(ascii: "\n") }) {
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { continue }
            let value = Substring(line[line.index(after: colon)...])
            switch Substring(line[..<colon]) {
            case "redis_version": version = String(value)
            case "maxmemory_policy": maxmemoryPolicy = String(value)
            case "maxmemory": maxmemory = Int(value) ?? 0
            case "used_memory": usedMemory = Int(value) ?? 0
            case "aof_enabled": isAOFEnabled = value == "1"
            case "loading": isLoading = value == "1"
            case "cluster_enabled": isCluster = value == "1"
            default: break
            }
        }
    }

    /// Checks whether a queue can live there.
    /// - Parameter allowsEviction: accept a server that may evict keys.
    /// - Returns: warnings, one sentence each.
    /// - Throws: `configuration` with a hint if it cannot.
    package func check(allowsEviction: Bool = false) throws(RedisError) -> [String] {
        guard majorVersion >= 7 else {
            throw RedisError(
                .configuration, "Redis \(version) is too old: the queue's scripts need 7.0 or newer",
                hint: "install redis-server 7; Debian 12 and Ubuntu 24.04 have it")
        }
        guard maxmemoryPolicy == "noeviction" || allowsEviction else {
            throw RedisError(
                .configuration, "Redis may throw away parts of the queue: its maxmemory-policy is \(maxmemoryPolicy)",
                hint: "redis-cli CONFIG SET maxmemory-policy noeviction")
        }
        var warnings: [String] = []
        if maxmemoryPolicy != "noeviction" {
            warnings.append("Redis may throw away parts of the queue: its maxmemory-policy is \(maxmemoryPolicy)")
        }
        // While loading its append-only file, a server reports that it has none.
        if !isAOFEnabled && !isLoading {
            warnings.append(
                "Redis keeps no append-only file: a crash of the server loses what was queued since its last snapshot")
        }
        return warnings
    }

    private var majorVersion: Int { Int(version.prefix { $0 != "." }) ?? 0 }
}

extension RedisConnection {
    package func serverFacts() throws(RedisError) -> RedisServerFacts {
        RedisServerFacts(info: try command(["INFO"]).string ?? "")
    }
}
