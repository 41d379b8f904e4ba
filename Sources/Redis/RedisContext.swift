internal import CHiredis
internal import CLinux
internal import Glibc
internal import Threading

/// The only owner of a hiredis context: connects in `init`, frees it in `deinit`. Discard the object after an I/O error: a late reply on
/// the same socket would be taken for the answer to the next command.
final class RedisContext {
    private let context: UnsafeMutablePointer<redisContext>
    private let socket: RedisSocket
    private let address: String
    private var packed: [UInt8] = []
    private var lengths: [Int] = []
    private var pointers: [UnsafePointer<CChar>?] = []

    /// Connects. `socket` holds the descriptor while this context lives, so that another thread can shut it down.
    init(_ configuration: RedisConfiguration, socket: RedisSocket) throws(RedisError) {
        address = configuration.redactedURL
        self.socket = socket
        let limit = Self.timeval(configuration.connectTimeout)
        let made =
            switch configuration.endpoint {
            case .tcp(let host, let port): redisConnectWithTimeout(host, Int32(port), limit)
            case .unix(let path): redisConnectUnixWithTimeout(path, limit)
            }
        guard let made else { throw RedisError(.unavailable, "no memory for a connection to Redis at \(address)") }
        context = made
        // From here on `deinit` frees the context, even if this initializer throws.
        guard made.pointee.err == 0 else {
            let text = Self.text(of: made)
            throw RedisError(
                .unavailable, "no Redis at \(address): \(text)",
                hint: configuration.unavailableHint)
        }
        if case .tcp = configuration.endpoint { redisEnableKeepAlive(made) }
        if let tls = configuration.tls { try Self.encrypt(made, tls, configuration) }
        // hiredis does not set it; child processes must not keep this connection open.
        _ = clinux_set_cloexec(made.pointee.fd, 1)
        setTimeout(configuration.commandTimeout)
        socket.opened(made.pointee.fd)
    }

    var peer: Set<RedisAddress> { RedisAddress.peer(of: context.pointee.fd) }

    deinit {
        // First, so that an interrupt never reaches a descriptor number that has been reused.
        socket.closed()
        redisFree(context)
    }

    /// TLS handshake. The certificate is always verified against the configured server name, by default the host of the address.
    private static func encrypt(
        _ context: UnsafeMutablePointer<redisContext>, _ tls: RedisTLS, _ configuration: RedisConfiguration
    ) throws(RedisError) {
        #if REDIS_TLS
            guard case .tcp(let host, _) = configuration.endpoint else {
                throw RedisError(
                    .configuration, "a Unix socket and TLS do not go together", hint: "write it as unix://")
            }
            redisSetTimeout(context, timeval(configuration.connectTimeout))
            var why = [CChar](repeating: 0, count: 256)
            errno = 0
            let status = chiredis_start_tls(
                context, tls.caFile ?? configuration.authorities, tls.certificateFile, tls.keyFile,
                tls.serverName ?? host, &why, why.count)
            guard status != CHIREDIS_TLS_OK else { return }
            let reason = String(decoding: why.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            if status == CHIREDIS_TLS_SETTINGS {
                throw RedisError(
                    .configuration, "TLS to Redis cannot be set up: \(reason)",
                    hint: "check --redis-ca-file, --redis-cert and --redis-key")
            }
            if status == CHIREDIS_TLS_UNTRUSTED {
                throw RedisError(
                    .configuration,
                    "the certificate of Redis at \(configuration.redactedURL) is not trusted: \(reason)",
                    hint: "name the authority with --redis-ca-file, or the certificate's name with --redis-sni")
            }
            throw RedisError(
                .unavailable, "no TLS with Redis at \(configuration.redactedURL): \(reason)",
                hint:
                    "check the port, and whether the server requires a client certificate: --redis-cert and --redis-key"
            )
        #else
            throw RedisTLS.notBuiltIn
        #endif
    }

    func setTimeout(_ limit: Duration) {
        redisSetTimeout(context, Self.timeval(limit))
    }

    /// Maximum size of a command including protocol overhead. By default Redis accepts 512 MB per argument (proto-max-bulk-len) and 1 GB
    /// per query, and hiredis 0.14 counts in 32 bits.
    private static let longestCommand = 511 << 20

    /// Appends one command to the output buffer.
    /// - Throws: `configuration` if it is too long; nothing of it was sent.
    func append(_ arguments: [RedisArgument]) throws(RedisError) {
        let length = arguments.reduce(0) { $0 + $1.bytes.count + 32 }
        guard length <= Self.longestCommand, arguments.count <= 1 << 20 else {
            throw RedisError(
                .configuration,
                "a command of \(length) bytes and \(arguments.count) arguments is more than Redis takes",
                hint: "make smaller jobs: --job-size; no line of a list is that long")
        }
        packed.removeAll(keepingCapacity: true)
        lengths.removeAll(keepingCapacity: true)
        for argument in arguments {
            packed.append(contentsOf: argument.bytes)
            lengths.append(argument.bytes.count)
        }
        // Even a command of empty arguments needs a base address.
        if packed.isEmpty { packed.append(0) }
        let status = packed.withUnsafeBytes { bytes in
            var next = bytes.baseAddress!.assumingMemoryBound(to: CChar.self)
            pointers.removeAll(keepingCapacity: true)
            for length in lengths {
                pointers.append(next)
                next += length
            }
            return lengths.withUnsafeBufferPointer { lengths in
                pointers.withUnsafeMutableBufferPointer { pointers in
                    redisAppendCommandArgv(
                        context, Int32(arguments.count), pointers.baseAddress,
                        UnsafeRawPointer(lengths.baseAddress!).assumingMemoryBound(to: Int.self))
                }
            }
        }
        guard status == REDIS_OK else { throw failure(errno, sent: false) }
    }

    func reply() throws(RedisError) -> RedisValue {
        var reply: UnsafeMutableRawPointer?
        errno = 0
        let status = redisGetReply(context, &reply)
        let code = errno
        guard status == REDIS_OK, let reply else { throw failure(code, sent: true) }
        defer { freeReplyObject(reply) }
        return Self.value(reply.assumingMemoryBound(to: redisReply.self))
    }

    private static func value(_ reply: UnsafePointer<redisReply>) -> RedisValue {
        let text = UnsafeBufferPointer(
            start: UnsafeRawPointer(reply.pointee.str)?.assumingMemoryBound(to: UInt8.self), count: reply.pointee.len)
        switch reply.pointee.type {
        case REDIS_REPLY_STRING: return .bytes(Array(text))
        case REDIS_REPLY_INTEGER: return .integer(Int(reply.pointee.integer))
        case REDIS_REPLY_NIL: return .null
        case REDIS_REPLY_STATUS: return .status(String(decoding: text, as: UTF8.self))
        case REDIS_REPLY_ERROR: return .error(RedisReplyError(String(decoding: text, as: UTF8.self)))
        default:
            // An array. RESP3 types do not occur without HELLO 3.
            let elements = UnsafeBufferPointer(start: reply.pointee.element, count: reply.pointee.elements)
            return .array(elements.map { $0.map { value($0) } ?? .null })
        }
    }

    /// The error of the last call. hiredis 0.14 reports a timeout as an I/O error with EAGAIN.
    private func failure(_ code: Int32, sent: Bool) -> RedisError {
        let text = Self.text(of: context)
        if context.pointee.err == REDIS_ERR_IO, let words = lastWords { return words.asError }
        switch context.pointee.err {
        case REDIS_ERR_PROTOCOL:
            return RedisError(
                .protocolError, "what answers at \(address) does not speak the Redis protocol: \(text)",
                outcomeUnknown: sent)
        case REDIS_ERR_IO where code == EAGAIN || code == ETIMEDOUT || text == String(cString: strerror(EAGAIN)), 6:
            return RedisError(.timedOut, "Redis at \(address) did not answer in time", outcomeUnknown: sent)
        case REDIS_ERR_EOF:
            return RedisError(.unavailable, "Redis at \(address) closed the connection", outcomeUnknown: sent)
        default:
            return RedisError(
                .unavailable, "the connection to Redis at \(address) broke: \(text)", outcomeUnknown: sent)
        }
    }

    /// The error that the server sent before it closed the connection, if a command could not be sent for that: hiredis has not read it.
    private var lastWords: RedisReplyError? {
        var buffer = [UInt8](repeating: 0, count: 512)
        let count = recv(context.pointee.fd, &buffer, buffer.count, Int32(MSG_DONTWAIT))
        guard count > 1, buffer[0] == UInt8(ascii: "-") else { return nil }
        return RedisReplyError(String(decoding: buffer[1..<count].prefix { $0 >= 32 }, as: UTF8.self))
    }

    private static func text(of context: UnsafeMutablePointer<redisContext>) -> String {
        withUnsafeBytes(of: &context.pointee.errstr) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }

    /// At least one millisecond: zero would disable the timeout (SO_RCVTIMEO, socket(7)).
    private static func timeval(_ limit: Duration) -> Glibc.timeval {
        let (seconds, attoseconds) = limit.components
        guard seconds >= 0, attoseconds >= 0, seconds > 0 || attoseconds > 0 else {
            return Glibc.timeval(tv_sec: 0, tv_usec: 1000)
        }
        let micros = Int(attoseconds / 1_000_000_000_000)
        return Glibc.timeval(tv_sec: Int(min(seconds, 1_000_000)), tv_usec: seconds == 0 ? max(1000, micros) : micros)
    }
}
