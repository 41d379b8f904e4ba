internal import Threading

/// A Lua script: a `static let` beside the method that runs it.
///
/// It is run by its SHA-1. The server computes that once per process (SCRIPT LOAD at the first use), so nothing here has to agree
/// with Redis about a digest.
package struct RedisScript: Sendable {
    /// For messages.
    package let name: String
    /// The text, with a `#!lua` line where it needs flags.
    package let source: String
    private let digest: Locked<RedisArgument?>

    package init(name: String, source: String) {
        self.name = name
        self.source = source
        digest = Locked(nil)
    }

    /// The SHA-1 in hexadecimal, nil before the first use.
    var sha: RedisArgument? { digest.withLock { $0 } }

    func learn(_ sha: RedisArgument) {
        digest.withLock { $0 = sha }
    }

    /// EVALSHA, or EVAL where the server has lost the script.
    func command(_ call: RedisScriptCall, byDigest sha: RedisArgument?) -> [RedisArgument] {
        let head: [RedisArgument] = [sha == nil ? "EVAL" : "EVALSHA", sha ?? RedisArgument(source)]
        return head + [RedisArgument(call.keys.count)] + call.keys + call.arguments
    }
}
