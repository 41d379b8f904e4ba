extension RedisConnection {
    /// Runs one script; sends its text only where the server does not have it (NOSCRIPT: a restart, SCRIPT FLUSH).
    /// - Throws: also for an error reply.
    @discardableResult package func run(
        _ script: RedisScript, keys: [RedisArgument], arguments: [RedisArgument] = []
    ) throws(RedisError) -> RedisValue {
        try run([RedisScriptCall(script, keys: keys, arguments: arguments)])[0].get()
    }

    /// Runs several scripts in one round trip, in order; error replies are values. Those the server did not have (NOSCRIPT) run
    /// in a second round trip, after the others: only for calls whose order among each other does not matter.
    package func run(_ calls: [RedisScriptCall]) throws(RedisError) -> [RedisValue] {
        try load(calls)
        var values = try pipeline(calls.map { $0.script.command($0, byDigest: $0.script.sha) })
        let missing = values.indices.filter { values[$0].error?.code == "NOSCRIPT" }
        guard !missing.isEmpty else { return values }
        let again = try pipeline(missing.map { calls[$0].script.command(calls[$0], byDigest: nil) })
        for (index, value) in zip(missing, again) { values[index] = value }
        return values
    }

    /// The same; tells too which start of the server has answered, its `run_id`: asked once a connection.
    package func runNamingServer(
        _ calls: [RedisScriptCall]
    ) throws(RedisError) -> (values: [RedisValue], server: String) {
        let values = try run(calls)
        if let serverID { return (values, serverID) }
        let id = RedisServerFacts(info: try command(["INFO", "server"]).string ?? "").runID
        serverID = id
        return (values, id)
    }

    /// Learns the SHA-1 of scripts that have not been used in this process.
    private func load(_ calls: [RedisScriptCall]) throws(RedisError) {
        let new = calls.filter { $0.script.sha == nil }
        guard !new.isEmpty else { return }
        let replies = try pipeline(new.map { ["SCRIPT", "LOAD", RedisArgument($0.script.source)] })
        for (call, reply) in zip(new, replies) {
            guard let sha = try reply.named(call.script.name).bytes else { continue }
            call.script.learn(RedisArgument(sha))
        }
    }
}

extension RedisValue {
    /// The value, or its error thrown with the script's name in front.
    fileprivate func named(_ script: String) throws(RedisError) -> RedisValue {
        guard case .error(let reply) = self else { return self }
        var error = reply.asError
        error.message = "script \(script): \(error.message)"
        throw error
    }
}
