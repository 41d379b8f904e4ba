internal import Threading

/// One connection to Redis: an actor on a thread of its own, which may block in hiredis.
///
/// It connects with the first command, and again after every I/O error, cut or timeout; the command that met the error throws
/// (``RedisError/outcomeUnknown`` says whether it may have run) and the next one starts on a fresh connection.
/// The process must ignore SIGPIPE: hiredis 0.14 writes with write(2), which raises it when the server is gone.
package actor RedisConnection {
    /// How it was made.
    package nonisolated let configuration: RedisConfiguration
    private nonisolated let name: String
    private nonisolated let executor: ThreadExecutor
    private nonisolated let socket = RedisSocket()
    private var context: RedisContext?
    /// `socket.interrupts` when `context` was made: another number means that its socket has been shut down since.
    private var contextInterrupts = 0
    /// The `run_id` of the server that `context` leads to, once somebody has asked.
    var serverID: String?
    /// How often it has connected: another number than before means that the server may be another one, or have forgotten something.
    package private(set) var connections = 0

    /// Starts the thread; nothing is connected yet. `name` is what CLIENT LIST shows.
    package init(_ configuration: RedisConfiguration, name: String) {
        self.configuration = configuration
        self.name = name
        executor = ThreadExecutor(name: "redis")
    }

    deinit { executor.stop() }

    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// Sends one command and waits for its reply.
    /// - Throws: also for an error reply.
    @discardableResult package func command(_ arguments: [RedisArgument]) throws(RedisError) -> RedisValue {
        try exchange([arguments], timeout: nil, interrupts: socket.interrupts)[0].get()
    }

    /// Sends all commands in one round trip. An error reply is that command's value; an I/O error is thrown, and then any prefix
    /// of the commands may have run.
    package func pipeline(_ commands: [[RedisArgument]]) throws(RedisError) -> [RedisValue] {
        try exchange(commands, timeout: nil, interrupts: socket.interrupts)
    }

    /// Sends a command that blocks in the server (BLMOVE) for up to `timeout`; the reply may come `commandTimeout` later.
    ///
    /// Meant for a connection of its own: everything else on this one waits. Ended early by ``interrupt()`` and by cancellation
    /// of the task, with the code `interrupted`.
    package nonisolated func blocking(
        _ arguments: [RedisArgument], timeout: Duration
    ) async throws(RedisError) -> RedisValue {
        let interrupts = socket.interrupts
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

    /// Ends the call under way and every ``blocking(_:timeout:)`` that is waiting for its turn, from any thread; they throw
    /// `interrupted`. A later call connects again.
    package nonisolated func interrupt() {
        socket.interrupt()
    }

    /// Closes the connection; a later call connects again.
    package func close() {
        context = nil
    }

    /// Whether there is a connection that has seen no error yet.
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
            let context = try connected()
            // Asked after the descriptor is known to `socket`: an interrupt from now on reaches the read below.
            guard socket.interrupts == interrupts else { throw Self.interrupted(outcomeUnknown: false) }
            if let timeout { context.setTimeout(timeout) }
            for command in commands { try context.append(command) }
            var replies: [RedisValue] = []
            replies.reserveCapacity(commands.count)
            for _ in commands { replies.append(try context.reply()) }
            if timeout != nil { context.setTimeout(configuration.commandTimeout) }
            // A server that has become a replica, perhaps behind a name that now leads elsewhere: resolve it anew.
            if replies.contains(where: { $0.error?.code == "READONLY" }) { close() }
            return replies
        } catch {
            close()
            guard socket.interrupts == interrupts else { throw Self.interrupted(outcomeUnknown: error.outcomeUnknown) }
            throw error
        }
    }

    private func connected() throws(RedisError) -> RedisContext {
        if let context, contextInterrupts == socket.interrupts { return context }
        self.context = nil
        contextInterrupts = socket.interrupts
        let context = try RedisContext(configuration, socket: socket)
        try greet(context)
        self.context = context
        serverID = nil
        connections += 1
        return context
    }

    /// AUTH, SELECT and CLIENT SETNAME in one round trip.
    private func greet(_ context: RedisContext) throws(RedisError) {
        var commands: [[RedisArgument]] = []
        if configuration.password != nil || configuration.username != nil {
            var command: [RedisArgument] = ["AUTH"]
            if let username = configuration.username { command.append(RedisArgument(username)) }
            command.append(RedisArgument(configuration.password ?? ""))
            commands.append(command)
        }
        commands.append(["SELECT", RedisArgument(configuration.database)])
        commands.append(["CLIENT", "SETNAME", RedisArgument(Self.clientName(name))])
        for command in commands { try context.append(command) }
        for command in commands {
            do throws(RedisError) {
                let reply = try context.reply()
                guard let error = reply.error else { continue }
                switch command[0] {
                case "AUTH": throw Self.refusal(error)
                case "SELECT": throw try self.selection(error)
                // A name is only a convenience, and an ACL user may lack the right.
                default: continue
                }
            } catch {
                // Nothing of the caller's has been sent yet; and what speaks another protocol from the start is no Redis.
                throw RedisError(
                    error.code, error.message,
                    hint: error.hint ?? (error.code == .protocolError ? "check the host and the port" : nil),
                    replyCode: error.replyCode)
            }
        }
    }

    private static func refusal(_ reply: RedisReplyError) -> RedisError {
        let error = reply.asError
        // Servers say ERR for a password they do not expect.
        guard error.code == .reply else { return error }
        return RedisError(
            .refused, "Redis refused the user name or the password: \(reply.text)",
            hint: "check the address, --redis-password-file and REDISCLI_AUTH", replyCode: reply.code)
    }

    private func selection(_ reply: RedisReplyError) throws(RedisError) -> RedisError {
        let error = reply.asError
        guard error.code == .reply else { return error }
        return RedisError(
            .configuration, "Redis has no database \(configuration.database): \(reply.text)",
            hint: "use a lower number, or raise `databases` of the server", replyCode: reply.code)
    }

    /// CLIENT SETNAME takes no blanks and no control characters.
    private static func clientName(_ name: String) -> String {
        String(decoding: name.utf8.map { (33...126).contains($0) ? $0 : UInt8(ascii: "-") }, as: UTF8.self)
    }

    private static func interrupted(outcomeUnknown: Bool) -> RedisError {
        RedisError(.interrupted, "the call to Redis was ended early", outcomeUnknown: outcomeUnknown)
    }
}
