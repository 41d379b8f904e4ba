/// The first commands on every connection: AUTH, SELECT, CLIENT SETNAME and, if the connection follows a key, a query whether this node
/// serves it. All in one round trip, before any command of the caller.
struct RedisHandshake {
    typealias Endpoint = RedisConfiguration.Endpoint

    enum Answer {
        /// It serves the key. `nodes`: those of its cluster, if any. `places`: where they and the server listen, as far as reported.
        case home(nodes: [Endpoint], places: Set<RedisAddress>)
        case elsewhere(Endpoint)
    }

    let configuration: RedisConfiguration
    /// Shown by CLIENT LIST.
    let name: String
    /// The key to locate; nil accepts any node.
    let key: String?

    /// Sends the commands over a connection to `node`.
    /// - Throws: `refused` for wrong credentials, `configuration` for an invalid database, `transient` if the node cannot serve now.
    func exchange(over context: RedisContext, to node: Endpoint) throws(RedisError) -> Answer {
        do throws(RedisError) {
            let commands = commands
            for command in commands { try context.append(command) }
            var answers: [RedisValue] = []
            for _ in commands { answers.append(try reply(over: context, after: answers)) }
            if let error = answers.first?.error, error.asError.isTransient || error.code == "DENIED" {
                throw error.asError
            }
            var isCluster = false
            var places: Set<RedisAddress> = []
            for (command, reply) in zip(commands, answers) {
                switch command[0] {
                case "AUTH": if let error = reply.error { throw Self.refusal(error) }
                case "SELECT": if let error = reply.error { throw selection(error) }
                case "INFO":
                    let info = reply.string ?? ""
                    if RedisServerFacts(info: info).isCluster { isCluster = true }
                    places.formUnion(own(RedisAddress.ports(info: info), over: context, node))
                case "EXISTS":
                    guard let error = reply.error else { continue }
                    if let next = error.redirection(from: node) { return .elsewhere(next) }
                    // ASK: the slot is migrating, but still here. Missing permissions surface with the first command that needs them.
                    let failure = error.asError
                    if error.code != "ASK" && (failure.isTransient || error.code == "NOAUTH") { throw failure }
                // The client name is optional, and an ACL user may lack the permission.
                default: continue
                }
            }
            guard isCluster else { return .home(nodes: [], places: places) }
            let found = try nodes(over: context, from: node)
            try context.append(["CLUSTER", "NODES"])
            let peer = context.peer.lazy.compactMap(\.name).first
            return .home(
                nodes: found, places: places.union(RedisAddress.nodes(try context.reply().string ?? "", own: peer)))
        } catch {
            // No command of the caller has been sent yet. A different protocol from the start means that this is not Redis.
            throw RedisError(
                error.code, error.message,
                hint: error.hint ?? (error.code == .protocolError ? "check the host and the port" : nil),
                replyCode: error.replyCode)
        }
    }

    /// The next reply. A server that admits no client says why, in one error, and closes the connection.
    private func reply(over context: RedisContext, after answers: [RedisValue]) throws(RedisError) -> RedisValue {
        do throws(RedisError) { return try context.reply() } catch {
            guard error.code == .unavailable, let words = answers.first?.error else { throw error }
            throw words.asError
        }
    }

    private var commands: [[RedisArgument]] {
        var commands: [[RedisArgument]] = []
        if configuration.password != nil || configuration.username != nil {
            var command: [RedisArgument] = ["AUTH"]
            if let username = configuration.username { command.append(RedisArgument(username)) }
            command.append(RedisArgument(configuration.password ?? ""))
            commands.append(command)
        }
        // Connections start in database 0. A cluster has no other database and rejects SELECT.
        if configuration.database != 0 { commands.append(["SELECT", RedisArgument(configuration.database)]) }
        commands.append(["CLIENT", "SETNAME", RedisArgument(Self.clientName(name))])
        if let key { commands += [["EXISTS", RedisArgument(key)], ["INFO", "cluster"], ["INFO", "server"]] }
        return commands
    }

    private func own(_ ports: Set<Int>, over context: RedisContext, _ node: Endpoint) -> Set<RedisAddress> {
        var hosts = context.peer.map(\.host)
        if case .unix = node { hosts = [.thisMachine] }
        return Set(hosts.flatMap { host in ports.map { RedisAddress(host, port: $0) } })
    }

    /// All nodes of the cluster, primaries and replicas; empty if the user may not list them.
    private func nodes(over context: RedisContext, from node: Endpoint) throws(RedisError) -> [Endpoint] {
        try context.append(["CLUSTER", "SLOTS"])
        var nodes: [Endpoint] = []
        // Each slot range: first slot, last slot, then host and port of its primary and of its replicas.
        for range in try context.reply().array ?? [] {
            for entry in (range.array ?? []).dropFirst(2) {
                guard let place = entry.array, place.count >= 2, let port = place[1].int,
                    let found = node.neighbour(host: place[0].string ?? "", port: port), !nodes.contains(found)
                else { continue }
                nodes.append(found)
            }
        }
        return nodes
    }

    private static func refusal(_ reply: RedisReplyError) -> RedisError {
        let error = reply.asError
        // Servers reply ERR to an unexpected password.
        guard error.code == .reply else { return error }
        return RedisError(
            .refused, "Redis refused the user name or the password: \(reply.text)",
            hint: "check the address, --redis-password-file and REDISCLI_AUTH", replyCode: reply.code)
    }

    private func selection(_ reply: RedisReplyError) -> RedisError {
        let error = reply.asError
        guard error.code == .reply else { return error }
        if reply.text.contains("cluster") {
            return RedisError(
                .configuration, "a Redis Cluster has no database \(configuration.database): \(reply.text)",
                hint: "leave the number out of the address; use --queue to keep several queues", replyCode: reply.code)
        }
        return RedisError(
            .configuration, "Redis has no database \(configuration.database): \(reply.text)",
            hint: "use a lower number, or raise `databases` of the server", replyCode: reply.code)
    }

    /// CLIENT SETNAME accepts neither blanks nor control characters.
    private static func clientName(_ name: String) -> String {
        String(decoding: name.utf8.map { (33...126).contains($0) ? $0 : UInt8(ascii: "-") }, as: UTF8.self)
    }
}
