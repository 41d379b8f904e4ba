internal import Glibc
internal import Threading
package import Redis

/// A Redis Cluster of private servers on loopback: masters that share the slots evenly, then replicas, of the first masters in turn.
package final class RedisCluster: Sendable {
    private struct NotReady: Error, CustomStringConvertible {
        let description: String
    }

    private struct Node: Sendable {
        var server: RedisServer
        var port: Int
        var control: RedisConnection
    }

    private let nodes: Locked<[Node]>

    /// The servers; their Unix sockets work too.
    package var servers: [RedisServer] { nodes.withLock { $0.map(\.server) } }
    private var ports: [Int] { nodes.withLock { $0.map(\.port) } }
    private var controls: [RedisConnection] { nodes.withLock { $0.map(\.control) } }

    /// Makes one and returns when all of its nodes say that it is complete.
    package init(masters: Int = 3, replicas: Int = 0) async throws {
        var all: [Node] = []
        for _ in 0..<(masters + replicas) { all.append(try await Self.node()) }
        nodes = Locked(all)
        for index in 0..<masters {
            let (first, end) = (index * 16384 / masters, (index + 1) * 16384 / masters)
            try await command(index, "CLUSTER", "ADDSLOTSRANGE", "\(first)", "\(end - 1)")
            try await command(index, "CLUSTER", "SET-CONFIG-EPOCH", "\(index + 1)")
        }
        for index in servers.indices.dropFirst() {
            try await command(0, "CLUSTER", "MEET", "127.0.0.1", "\(ports[index])", "\(try await busPort(index))")
        }
        try await untilAll { $0.contains("cluster_known_nodes:\(servers.count)") }
        for index in masters..<servers.count {
            try await command(index, "CLUSTER", "REPLICATE", try await id(of: (index - masters) % masters))
            try await untilReplicated(index)
        }
        try await untilAll { $0.contains("cluster_state:ok") }
    }

    /// Adds a master without slots, and returns its number when all nodes know it.
    package func add() async throws -> Int {
        let node = try await Self.node()
        let index = nodes.withLock { nodes in
            nodes.append(node)
            return nodes.count - 1
        }
        try await command(0, "CLUSTER", "MEET", "127.0.0.1", "\(node.port)", "\(try await busPort(index))")
        try await untilAll { $0.contains("cluster_known_nodes:\(index + 1)") && $0.contains("cluster_state:ok") }
        return index
    }

    /// The port of a node for its clients.
    package func port(_ index: Int) -> Int { ports[index] }

    /// The port of a node for the other nodes.
    package func busPort(_ index: Int) async throws -> Int {
        try await command(index, "CONFIG", "GET", "cluster-port").array?.last?.int ?? 0
    }

    /// `redis://127.0.0.1:6381`
    package func url(_ index: Int) -> String { "redis://127.0.0.1:\(ports[index])" }

    /// One command to one node; for looking and for breaking things on purpose.
    @discardableResult
    package func command(_ index: Int, _ words: String...) async throws -> RedisValue {
        try await controls[index].command(words.map { RedisArgument($0) })
    }

    /// The slot of a key.
    package func slot(of key: String) async throws -> Int {
        try await command(0, "CLUSTER", "KEYSLOT", key).int ?? -1
    }

    /// The node that serves a key, as `observer` sees it.
    package func owner(of key: String, seenBy observer: Int = 0) async throws -> Int? {
        let slot = try await slot(of: key)
        for range in try await command(observer, "CLUSTER", "SLOTS").array ?? [] {
            guard let parts = range.array, let first = parts[0].int, let last = parts[1].int, first <= slot,
                slot <= last
            else { continue }
            return parts[2].array?[1].int.flatMap { ports.firstIndex(of: $0) }
        }
        return nil
    }

    /// Moves the slot of a key with all its keys to another master, as redis-cli does it; `meanwhile` runs when half of them have gone.
    package func move(slotOf key: String, to target: Int, meanwhile: () async throws -> Void = {}) async throws {
        // A node that has not heard of a fail-over yet refuses keys: CLUSTERDOWN.
        try await untilAll { $0.contains("cluster_state:ok") }
        let slot = "\(try await slot(of: key))"
        guard let source = try await owner(of: key) else { throw NotReady(description: "nobody has slot \(slot)") }
        let (sourceID, targetID) = (try await id(of: source), try await id(of: target))
        try await command(target, "CLUSTER", "SETSLOT", slot, "IMPORTING", sourceID)
        try await command(source, "CLUSTER", "SETSLOT", slot, "MIGRATING", targetID)
        let keys = (try await command(source, "CLUSTER", "GETKEYSINSLOT", slot, "100000").array ?? []).compactMap(
            \.string)
        func send(_ keys: ArraySlice<String>) async throws {
            guard !keys.isEmpty else { return }
            let head = ["MIGRATE", "127.0.0.1", "\(ports[target])", "", "0", "5000", "KEYS"]
            try await until {
                do throws(RedisError) {
                    _ = try await controls[source].command((head + keys).map { RedisArgument($0) })
                    return true
                } catch {
                    // A busy machine keeps nodes from hearing of each other.
                    guard error.message.contains("CLUSTERDOWN") else { throw error }
                    return false
                }
            }
        }
        try await send(keys.prefix(keys.count / 2))
        try await meanwhile()
        try await send(keys.dropFirst(keys.count / 2))
        for index in [target, source] + servers.indices.filter({ $0 != target && $0 != source }) {
            // Replicas learn it from their master.
            guard try await !command(index, "ROLE").array![0].isReplica else { continue }
            try await command(index, "CLUSTER", "SETSLOT", slot, "NODE", targetID)
        }
    }

    /// Makes a replica the master in place of its own, in agreement with it: nothing is lost. Returns once both know.
    package func allowFailures(to replica: Int) async throws {
        try await untilReplicated(replica)
        let port = try await command(replica, "ROLE").array?[2].int
        try await command(replica, "CLUSTER", "FAILOVER")
        try await untilMaster(replica)
        guard let old = ports.firstIndex(where: { $0 == port }) else { return }
        while try await !command(old, "ROLE").array![0].isReplica { try await Task.sleep(for: .milliseconds(10)) }
    }

    /// Returns once a node is a master that serves.
    package func untilMaster(_ index: Int) async throws {
        while true {
            let isMaster = try await !command(index, "ROLE").array![0].isReplica
            if isMaster, try await info(index).contains("cluster_state:ok") { return }
            try await Task.sleep(for: .milliseconds(10))
        }
    }

    /// Ends the control connection too, so that it does not stand in the way of a server that is gone.
    package func kill9(_ index: Int) async {
        await servers[index].kill9()
        await controls[index].close()
    }

    private func id(of index: Int) async throws -> String { try await command(index, "CLUSTER", "MYID").string ?? "" }

    private func info(_ index: Int) async throws -> String { try await command(index, "CLUSTER", "INFO").string ?? "" }

    private func untilAll(_ condition: (String) -> Bool) async throws {
        for index in servers.indices {
            while try await !condition(info(index)) { try await Task.sleep(for: .milliseconds(10)) }
        }
    }

    private func untilReplicated(_ index: Int) async throws {
        while try await !(command(index, "INFO", "replication").string ?? "").contains("master_link_status:up") {
            try await Task.sleep(for: .milliseconds(10))
        }
    }

    /// A node without slots. Its two ports are the kernel's choice; where another program was quicker, others are tried.
    private static func node() async throws -> Node {
        var failure: any Error = NotReady(description: "no free port")
        for _ in 0..<5 {
            let (port, bus) = (freePort(), freePort())
            do {
                let server = try await RedisServer(options: [
                    "--port", "\(port)", "--bind", "127.0.0.1", "--cluster-enabled", "yes", "--cluster-port", "\(bus)",
                    "--cluster-node-timeout", "1500", "--cluster-config-file", "nodes.conf",
                    "--repl-diskless-sync-delay", "0",
                ])
                let control = RedisConnection(try RedisConfiguration(url: server.url), name: "control")
                return Node(server: server, port: port, control: control)
            } catch {
                failure = error
            }
        }
        throw failure
    }
}

extension RedisValue {
    fileprivate var isReplica: Bool { string != "master" }
}

/// A port of 127.0.0.1 that nobody has at this moment.
package func freePort() -> Int {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            _ = bind(descriptor, $0, length)
            _ = getsockname(descriptor, $0, &length)
        }
    }
    return Int(UInt16(bigEndian: address.sin_port))
}
