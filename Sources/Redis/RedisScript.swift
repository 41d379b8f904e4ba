internal import Threading

/// A Lua script: a `static let` beside the method that runs it. It is run by its SHA-1, which the server computes once per process (SCRIPT
/// LOAD on first use), so no digest has to be computed here.
package struct RedisScript: Sendable {
    package let name: String
    /// The script's text, starting with a `#!lua` line if it needs flags.
    package let source: String
    private let digest: Locked<RedisArgument?>

    package init(name: String, source: String) {
        self.name = name
        self.source = source
        digest = Locked(nil)
    }

    /// SHA-1 in hexadecimal; nil before the first use.
    var sha: RedisArgument? { digest.withLock { $0 } }

    func learn(_ sha: RedisArgument) {
        digest.withLock { $0 = sha }
    }

    /// EVALSHA, or EVAL if the server has lost the script.
    func command(_ call: RedisScriptCall, byDigest sha: RedisArgument?) -> [RedisArgument] {
        let head: [RedisArgument] = [sha == nil ? "EVAL" : "EVALSHA", sha ?? RedisArgument(source)]
        return head + [RedisArgument(call.keys.count)] + call.keys + call.arguments
    }
}
