package struct RedisReplyError: Sendable, Hashable, CustomStringConvertible {
    /// The whole line without the leading minus.
    package let text: String

    package init(_ text: String) { self.text = text }

    /// The first word: `ERR`, `NOSCRIPT`, `OOM`.
    package var code: String { String(text.prefix { $0 != " " }) }

    package var description: String { text }

    package var asError: RedisError {
        let code = self.code
        switch code {
        case "NOAUTH":
            return RedisError(
                .refused, "Redis requires a password: \(text)",
                hint: "put it into the address, into --redis-password-file or into REDISCLI_AUTH", replyCode: code)
        case "WRONGPASS":
            return RedisError(
                .refused, "Redis refused the user name or the password: \(text)",
                hint: "check the address, --redis-password-file and REDISCLI_AUTH", replyCode: code)
        case "NOPERM":
            return RedisError(
                .refused, "Redis forbids a command to this user: \(text)",
                hint: "give the user the missing right with ACL SETUSER", replyCode: code)
        case "LOADING", "MASTERDOWN", "BUSY", "CLUSTERDOWN", "TRYAGAIN", "READONLY", "MISCONF", "NOREPLICAS",
            "UNBLOCKED":
            return RedisError(.transient, "Redis cannot serve now: \(text)", replyCode: code)
        case "OOM":
            return RedisError(
                .outOfMemory, "Redis is full: \(text)",
                hint: "raise maxmemory, or wait until the workers have drained the queue", replyCode: code)
        case "MOVED":
            return RedisError(
                .transient, "the Redis Cluster keeps the queue at another node than the one that was asked: \(text)",
                hint: "redis-cli --cluster check HOST:PORT shows whether its nodes agree", replyCode: code)
        case "ASK":
            return RedisError(
                .transient, "the Redis Cluster is moving the queue to another node: \(text)",
                hint:
                    "wait until the slot has moved; redis-cli --cluster fix HOST:PORT ends a move that was broken off",
                replyCode: code)
        default:
            if text.hasPrefix("ERR max number of clients reached") {
                return RedisError(
                    .transient, "Redis takes no more clients now", hint: "raise maxclients", replyCode: code)
            }
            return RedisError(.reply, "Redis replied: \(text)", replyCode: code)
        }
    }
}
