package struct RedisScriptCall: Sendable {
    package var script: RedisScript
    package var keys: [RedisArgument]
    package var arguments: [RedisArgument]

    package init(_ script: RedisScript, keys: [RedisArgument], arguments: [RedisArgument] = []) {
        self.script = script
        self.keys = keys
        self.arguments = arguments
    }
}
