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
                .refused, "Redis forbids a command to this user: \(text)", hint: "give the right: \(grant)",
                replyCode: code)
        case "LOADING", "MASTERDOWN", "BUSY", "CLUSTERDOWN", "TRYAGAIN", "READONLY", "MISCONF", "NOREPLICAS",
            "UNBLOCKED", "NOSCRIPT":
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
                    .transient, "Redis takes no more clients now: \(text)", hint: "raise maxclients", replyCode: code)
            }
            if text.contains("ACL failure in script") || text.contains("The user executing the script can't") {
                return RedisError(
                    .refused, "Redis forbids a command in a script to this user: \(text)",
                    hint: "give the right: \(grant)", replyCode: code)
            }
            if let name = command(after: "unknown command "), Self.scripting.contains(name) {
                return RedisError(
                    .refused, "Redis has no command \(name.uppercased()): \(text)",
                    hint: "take its rename-command line out of redis.conf; to keep it from other users: \(grant)",
                    replyCode: code)
            }
            return RedisError(.reply, "Redis replied: \(text)", replyCode: code)
        }
    }

    /// The commands that run scripts, which is how everything is changed.
    private static let scripting = ["eval", "evalsha", "script"]

    /// The command that Redis names in quotes behind a phrase, in small letters.
    private func command(after phrase: String) -> String? {
        guard let range = text.firstRange(of: phrase) else { return nil }
        let rest = text[range.upperBound...]
        guard let quote = rest.first, quote == "'" || quote == "`" else { return nil }
        return rest.dropFirst().prefix { $0 != quote && $0 != "|" && $0 != " " }.lowercased()
    }

    /// The line that gives a user what is missing: all that a queue needs, and the keys where Redis speaks of them.
    private var grant: String {
        let words = text.split(separator: " ")
        let place = words.firstIndex { $0.lowercased() == "user" }.map { $0 + 1 }
        let word = place.flatMap { $0 < words.count ? words[$0] : nil }
        // "this user has no …", "the user executing …"
        let name = word.flatMap { ["has", "executing"].contains($0) ? nil : $0 } ?? "NAME"
        let isOfKeys = ["access a key", "access one of the keys", "access at least one of the keys"]
            .contains { text.contains($0) }
        return "redis-cli ACL SETUSER \(name.filter { $0.isLetter || $0.isNumber || "_-.".contains($0) }) "
            + (isOfKeys ? "'~prefetch:*'" : "+@read +@write +@scripting +@connection +info +time")
    }
}
