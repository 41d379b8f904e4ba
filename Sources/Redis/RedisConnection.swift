internal import Threading

/// One connection to Redis: an actor on its own thread, which may block in hiredis.
///
/// It connects on the first command and reconnects after every I/O error, interrupt or timeout. The command that failed throws
/// (``RedisError/outcomeUnknown`` says whether it may have run); the next one uses a fresh connection.
///
/// With a key to follow, it connects to the Redis Cluster node that serves the key, whichever node is configured: it asks when it connects,
/// follows MOVED, and searches again if the node is unreachable or has become a replica. A standalone server serves every key. The process
/// must ignore SIGPIPE: hiredis 0.14 uses write(2), which raises it when the server is gone.
package actor RedisConnection {
    package nonisolated let configuration: RedisConfiguration
    private nonisolated let name: String
    private nonisolated let key: String?
    private nonisolated let onAddresses: @Sendable (Set<RedisAddress>) -> Void
    private nonisolated let executor: ThreadExecutor
    private nonisolated let socket = RedisSocket()
    private var context: RedisContext?
    /// `socket.interrupts` when `context` was created; a different number means that its socket has been shut down since.
    private var contextInterrupts = 0
    private var route: RedisRoute
    private var node: RedisConfiguration.Endpoint
    /// Number of connections so far. If it has changed, the server may be a different one or have lost data.
    package private(set) var connections = 0

    /// Starts the thread; does not connect yet.
    /// * `name`: shown by CLIENT LIST.
    /// * `key`: the key to follow through a Redis Cluster; all keys used over this connection belong to its slot.
    /// * `onAddresses`: called on the connection's thread for each new connection, before any command of the caller: with the addresses the
    ///   server listens on, the other nodes of its cluster, and all addresses of the host name.
    package init(
        _ configuration: RedisConfiguration, name: String, following key: String? = nil,
        onAddresses: @escaping @Sendable (Set<RedisAddress>) -> Void = { _ in }
    ) {
        self.onAddresses = onAddresses
        self.configuration = configuration
        self.name = name
        self.key = key
        route = RedisRoute(given: configuration.endpoint)
        node = configuration.endpoint
        executor = ThreadExecutor(name: "redis")
    }

    deinit { executor.stop() }

    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// Sends one command and waits for its reply.
    /// - Throws: also for an error reply.
    @discardableResult package func command(_ arguments: [RedisArgument]) throws(RedisError) -> RedisValue {
        try exchange([arguments], timeout: nil, interrupts: socket.interrupts)[0].get()
    }

    /// Sends all commands in one round trip. An error reply is that command's value; after a thrown I/O error any prefix may have run.
    package func pipeline(_ commands: [[RedisArgument]]) throws(RedisError) -> [RedisValue] {
        try exchange(commands, timeout: nil, interrupts: socket.interrupts)
    }

    /// Sends a command that blocks in the server (BLMOVE) for up to `timeout`; the reply may take `commandTimeout` longer. Use a dedicated
    /// connection: other calls on it wait. ``interrupt()`` and task cancellation end it early with the code `interrupted`.
    /// * `since`: ``interrupts`` before the caller looked whether to wait at all: an interrupt after that ends the call too.
    package nonisolated func blocking(
        _ arguments: [RedisArgument], timeout: Duration, since: Int? = nil
    ) async throws(RedisError) -> RedisValue {
        let interrupts = since ?? socket.interrupts
        let result: Result<RedisValue, RedisError> = await withTaskCancellationHandler {
            do throws(RedisError) {
                return .success(try await wait(arguments, timeout: timeout, interrupts: interrupts))
            } catch {
                return .failure(error)
            }
        } onCancel: {
            socket.interrupt()
        }
        return try result.get()
    }

    /// Calls of ``interrupt()`` so far.
    package nonisolated var interrupts: Int { socket.interrupts }

    /// Ends the current call and every queued ``blocking(_:timeout:since:)``, from any thread; they throw `interrupted`. A later call
    /// reconnects.
    package nonisolated func interrupt() {
        socket.interrupt()
    }

    package func close() {
        context = nil
    }

    package var endpoint: RedisConfiguration.Endpoint { node }

    package var isConnected: Bool { context != nil }

    private func wait(
        _ arguments: [RedisArgument], timeout: Duration, interrupts: Int
    ) throws(RedisError) -> RedisValue {
        let limit = timeout + configuration.commandTimeout
        return try exchange([arguments], timeout: limit, interrupts: interrupts)[0].get()
    }

    private func exchange(
        _ commands: [[RedisArgument]], timeout: Duration?, interrupts: Int
    ) throws(RedisError) -> [RedisValue] {
        do throws(RedisError) {
            var replies = try send(commands, timeout: timeout, interrupts: interrupts)
            try follow(&replies, of: commands, timeout: timeout, interrupts: interrupts)
            // The server has become a replica, perhaps behind a name that now leads elsewhere: resolve it again.
            if replies.contains(where: { $0.error?.code == "READONLY" }) {
                route.clearHome()
                close()
            }
            return replies
        } catch {
            close()
            guard socket.interrupts == interrupts else { throw Self.interrupted(outcomeUnknown: error.outcomeUnknown) }
            throw error
        }
    }

    private func send(
        _ commands: [[RedisArgument]], timeout: Duration?, interrupts: Int
    ) throws(RedisError) -> [RedisValue] {
        let context = try connected()
        // Checked after `socket` knows the descriptor: a later interrupt reaches the read below.
        guard socket.interrupts == interrupts else { throw Self.interrupted(outcomeUnknown: false) }
        if let timeout { context.setTimeout(timeout) }
        for command in commands { try context.append(command) }
        var replies: [RedisValue] = []
        replies.reserveCapacity(commands.count)
        for _ in commands { replies.append(try context.reply()) }
        if timeout != nil { context.setTimeout(configuration.commandTimeout) }
        return replies
    }

    /// Follows MOVED replies and resends those commands, which have not run; the others have.
    private func follow(
        _ replies: inout [RedisValue], of commands: [[RedisArgument]], timeout: Duration?, interrupts: Int
    ) throws(RedisError) {
        var count = 0
        while true {
            let moved = replies.indices.filter { replies[$0].error?.code == "MOVED" }
            guard let first = moved.first, let error = replies[first].error,
                let next = error.redirection(from: node)
            else { return }
            count += 1
            guard count <= RedisRoute.maxRedirections else { throw Self.circle(error.text) }
            close()
            route.moved(to: next)
            do throws(RedisError) {
                let again = try send(moved.map { commands[$0] }, timeout: timeout, interrupts: interrupts)
                for (index, reply) in zip(moved, again) { replies[index] = reply }
            } catch {
                var error = error
                error.outcomeUnknown = error.outcomeUnknown || moved.count < commands.count
                throw error
            }
        }
    }

    private func connected() throws(RedisError) -> RedisContext {
        if let context, contextInterrupts == socket.interrupts { return context }
        self.context = nil
        contextInterrupts = socket.interrupts
        let deadline = ContinuousClock.now + configuration.connectTimeout + configuration.commandTimeout
        var failure: RedisError?
        for candidate in route.candidates {
            do throws(RedisError) {
                return try reach(candidate)
            } catch {
                route.failed(candidate)
                // Report the first one: it is the configured node, or the last one that worked.
                failure = failure ?? error
                // If a node is down or cannot serve, another may; a wrong password is wrong everywhere.
                guard error.isTransient, socket.interrupts == contextInterrupts, ContinuousClock.now < deadline else {
                    break
                }
            }
        }
        throw failure ?? RedisError(.unavailable, "no Redis at \(configuration.redactedURL)")
    }

    private func reach(_ start: RedisConfiguration.Endpoint) throws(RedisError) -> RedisContext {
        var target = configuration
        target.endpoint = start
        let greeting = RedisHandshake(configuration: configuration, name: name, key: key)
        for _ in 0...RedisRoute.maxRedirections {
            let context = try RedisContext(target, socket: socket)
            var places = context.peer
            if case .tcp(let host, let port) = target.endpoint {
                places.formUnion(RedisAddress.all(of: host, port: port))
            }
            onAddresses(places)
            switch try greeting.exchange(over: context, to: target.endpoint) {
            case .home(let nodes, let places):
                onAddresses(places)
                route.arrived(at: target.endpoint, nodes: nodes)
                node = target.endpoint
                self.context = context
                connections += 1
                return context
            case .elsewhere(let next): target.endpoint = next
            }
        }
        throw Self.circle("MOVED to \(target.redactedURL)")
    }

    /// The nodes disagree: briefly after a failover, otherwise until the cluster is repaired.
    private static func circle(_ text: String) -> RedisError {
        RedisError(
            .transient, "the nodes of the Redis Cluster send the queue's clients round in a circle: \(text)",
            hint: "redis-cli --cluster check HOST:PORT shows what they disagree about", replyCode: "MOVED")
    }

    private static func interrupted(outcomeUnknown: Bool) -> RedisError {
        RedisError(.interrupted, "the call to Redis was ended early", outcomeUnknown: outcomeUnknown)
    }
}

// MARK: - Scripts

extension RedisConnection {
    /// Runs one script; sends its text only if the server does not have it (NOSCRIPT: restart, SCRIPT FLUSH).
    /// - Throws: also for an error reply.
    @discardableResult package func run(
        _ script: RedisScript, keys: [RedisArgument], arguments: [RedisArgument] = []
    ) throws(RedisError) -> RedisValue {
        try run([RedisScriptCall(script, keys: keys, arguments: arguments)])[0].get()
    }

    /// Runs several scripts in one round trip, in order; error replies are values. Scripts missing on the server (NOSCRIPT) run in a second
    /// round trip, after the others: use it only for calls whose order does not matter.
    package func run(_ calls: [RedisScriptCall]) throws(RedisError) -> [RedisValue] {
        try load(calls)
        var values = try pipeline(calls.map { $0.script.command($0, byDigest: $0.script.sha) })
        let missing = values.indices.filter { values[$0].error?.code == "NOSCRIPT" }
        guard !missing.isEmpty else { return values }
        let again = try pipeline(missing.map { calls[$0].script.command(calls[$0], byDigest: nil) })
        for (index, value) in zip(missing, again) { values[index] = value }
        return values
    }

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
    /// Returns the value, or throws its error prefixed with the script's name.
    fileprivate func named(_ script: String) throws(RedisError) -> RedisValue {
        guard case .error(let reply) = self else { return self }
        var error = reply.asError
        error.message = "script \(script): \(error.message)"
        throw error
    }
}
