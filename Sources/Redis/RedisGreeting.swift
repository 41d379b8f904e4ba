/// The first commands on every connection: AUTH, SELECT, CLIENT SETNAME and, where the connection follows a key, the question whether
/// this is the node that has it. All in one round trip, before anything of the caller's is sent.
struct RedisGreeting {
    typealias Endpoint = RedisConfiguration.Endpoint

    /// What the node said.
    enum Answer {
        /// It serves the key. `nodes` are those of its cluster; none where it is in no cluster. `places`: where they and the server itself
        /// listen, as far as they say so.
        case home(nodes: [Endpoint], places: Set<RedisPlace>)
        /// Another node serves it.
        case elsewhere(Endpoint)
    }

    let configuration: RedisConfiguration
    /// What CLIENT LIST shows.
    let name: String
    /// The key whose node is looked for; nil where any node will do.
    let key: String?

    /// Says it over a connection to `node`.
    /// - Throws: `refused` for wrong credentials, `configuration` for a database that is not there, `transient` for a node that
    ///   cannot serve now.
    func exchange(over context: RedisContext, to node: Endpoint) throws(RedisError) -> Answer {
        do throws(RedisError) {
            let commands = commands
            for command in commands { try context.append(command) }
            var answers: [RedisValue] = []
            for _ in commands { answers.append(try context.reply()) }
            var isCluster = false
            var places: Set<RedisPlace> = []
            for (command, reply) in zip(commands, answers) {
                switch command[0] {
                case "AUTH": if let error = reply.error { throw Self.refusal(error) }
                case "SELECT": if let error = reply.error { throw selection(error) }
                case "INFO":
                    let info = reply.string ?? ""
                    if RedisServerFacts(info: info).isCluster { isCluster = true }
                    places.formUnion(own(RedisPlace.ports(info: info), over: context, node))
                case "EXISTS":
                    guard let error = reply.error else { continue }
                    if let next = error.redirection(from: node) { return .elsewhere(next) }
                    // ASK is this node's own key on its way to another one: still here. A right that is missing shows with the first
                    // command that needs it.
                    let failure = error.asError
                    if error.code != "ASK" && (failure.isTransient || error.code == "NOAUTH") { throw failure }
                // A name is only a convenience, and an ACL user may lack the right.
                default: continue
                }
            }
            guard isCluster else { return .home(nodes: [], places: places) }
            let found = try nodes(over: context, from: node)
            try context.append(["CLUSTER", "NODES"])
            let peer = context.peer.lazy.compactMap(\.name).first
            return .home(
                nodes: found, places: places.union(RedisPlace.nodes(try context.reply().string ?? "", own: peer)))
        } catch {
            // Nothing of the caller's has been sent yet; and what speaks another protocol from the start is no Redis.
            throw RedisError(
                error.code, error.message,
                hint: error.hint ?? (error.code == .protocolError ? "check the host and the port" : nil),
                replyCode: error.replyCode)
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
        // Every connection begins in database 0, and a cluster has no other and refuses the command.
        if configuration.database != 0 { commands.append(["SELECT", RedisArgument(configuration.database)]) }
        commands.append(["CLIENT", "SETNAME", RedisArgument(Self.clientName(name))])
        if let key { commands += [["EXISTS", RedisArgument(key)], ["INFO", "cluster"], ["INFO", "server"]] }
        return commands
    }

    /// Ports that the server itself says it listens at.
    private func own(_ ports: Set<Int>, over context: RedisContext, _ node: Endpoint) -> Set<RedisPlace> {
        var hosts = context.peer.map(\.host)
        if case .unix = node { hosts = [.thisMachine] }
        return Set(hosts.flatMap { host in ports.map { RedisPlace(host, port: $0) } })
    }

    /// The nodes of the cluster, masters and replicas; none where the server does not tell this user.
    private func nodes(over context: RedisContext, from node: Endpoint) throws(RedisError) -> [Endpoint] {
        try context.append(["CLUSTER", "SLOTS"])
        var nodes: [Endpoint] = []
        // Each range of slots is its two ends, then host and port of its master and of its replicas.
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
        // Servers say ERR for a password they do not expect.
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

    /// CLIENT SETNAME takes no blanks and no control characters.
    private static func clientName(_ name: String) -> String {
        String(decoding: name.utf8.map { (33...126).contains($0) ? $0 : UInt8(ascii: "-") }, as: UTF8.self)
    }
}
