internal import ArgumentParser
internal import FoundationEssentials
internal import Prefetch
internal import Redis

/// Which Redis a command talks to: `--redis`, `--cache`, then PREFETCH_REDIS_URL, PREFETCH_CACHE, REDIS_URL, then `./cache` if it
/// has a private Redis, which is used only while it runs, then a Redis on this machine.
struct RedisLocation: ParsableArguments {
    @Option(
        help:
            "redis://[user[:password]@]host[:port][/db], of a cluster any node; rediss:// with TLS; or unix:///path?db=1."
    )
    var redis: String?

    @Option(
        help:
            "The cache folder; without --redis, the private Redis in it is used. By default what the environment names, then ./cache, whose Redis is used only while it runs."
    )
    var cache: String?

    @Flag(help: TrustOption.help)
    var trustCache = false

    @Option(help: "A file with the password of Redis.")
    var redisPasswordFile: String?

    @Option(help: "With rediss://: a file with the authorities that may vouch for Redis; the system's by default.")
    var redisCacert: String?

    @Option(help: "With rediss://: a file with the client's certificate, where Redis asks for one.")
    var redisCert: String?

    @Option(help: "With rediss://: a file with the key of the client's certificate.")
    var redisKey: String?

    @Option(help: "With rediss://: the name in the certificate of Redis, where it is not the address's host.")
    var redisSni: String?

    @Option(help: "The queue in Redis.")
    var queue = "default"

    func validate() throws {
        guard PrefetchQueue.isValidName(queue) else {
            throw ValidationError("--queue is 1 to 64 letters, digits, '_' or '-'")
        }
        if let cache, cache.isEmpty { throw ValidationError("--cache wants a folder") }
    }

    /// Where to go.
    enum Place: Sendable {
        case server(RedisConfiguration)
        case cache(String)
    }

    /// Looks at the options and the environment, in the documented order.
    func place() throws(PrefetchError) -> Place {
        let place = try namedPlace()
        if case .cache = place, let option = tlsOptions.first { throw Self.needsTLS(option.name) }
        return place
    }

    /// The same for a worker and for who gives it a list, to whom `--cache` is first of all where images are: where that folder has no Redis
    /// of its own, those that the environment names come next.
    func placeOfWorker() throws(PrefetchError) -> Place {
        let place = try place()
        guard case .cache(let folder) = place, !PrivateRedis.isOurs(cache: folder) else { return place }
        let environment = ProcessInfo.processInfo.environment
        for name in ["PREFETCH_REDIS_URL", "REDIS_URL"] {
            if let url = environment[name], !url.isEmpty { return .server(try configuration(url)) }
        }
        return place
    }

    private func namedPlace() throws(PrefetchError) -> Place {
        let environment = ProcessInfo.processInfo.environment
        func named(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }
        if let redis { return .server(try configuration(redis)) }
        if let cache { return .cache(cache) }
        if let url = named("PREFETCH_REDIS_URL") { return .server(try configuration(url)) }
        if let folder = named("PREFETCH_CACHE") { return .cache(folder) }
        if let url = named("REDIS_URL") { return .server(try configuration(url)) }
        if PrivateRedis.isOurs(cache: "./cache") { return .cache("./cache") }
        var usual = try configuration("redis://127.0.0.1:6379/0")
        usual.unavailableHint = "name the cache of your run: --cache DIR; or the Redis of your queue: --redis URL"
        return .server(usual)
    }

    /// The folder of images a command works with, where one was named.
    var cacheFolder: String? {
        cache ?? ProcessInfo.processInfo.environment["PREFETCH_CACHE"]
            ?? (PrivateRedis.isOurs(cache: "./cache") ? "./cache" : nil)
    }

    /// The options of TLS that were given.
    private var tlsOptions: [(name: String, value: String)] {
        [
            ("--redis-cacert", redisCacert), ("--redis-cert", redisCert), ("--redis-key", redisKey),
            ("--redis-sni", redisSni),
        ].compactMap { name, value in value.map { (name, $0) } }
    }

    private static func needsTLS(_ option: String) -> PrefetchError {
        PrefetchError(
            .configuration, "\(option) is for a Redis over TLS, and this one is not",
            hint: "write its address as rediss://host:port, or leave the option out")
    }

    /// A server by its address, with what the options and the environment add.
    func configuration(_ url: String) throws(PrefetchError) -> RedisConfiguration {
        var result: RedisConfiguration
        do throws(RedisError) { result = try RedisConfiguration(url: url) } catch { throw PrefetchError(error) }
        if let option = tlsOptions.first {
            guard var tls = result.tls else { throw Self.needsTLS(option.name) }
            tls.caFile = redisCacert ?? tls.caFile
            tls.certificateFile = redisCert ?? tls.certificateFile
            tls.keyFile = redisKey ?? tls.keyFile
            tls.serverName = redisSni ?? tls.serverName
            do throws(RedisError) { try tls.validate() } catch { throw PrefetchError(error) }
            result.tls = tls
        }
        let environment = ProcessInfo.processInfo.environment
        if let file = redisPasswordFile ?? environment["PREFETCH_REDIS_PASSWORD_FILE"] {
            guard let text = try? String(contentsOfFile: file, encoding: .utf8) else {
                throw PrefetchError(
                    .configuration, "cannot read the password file \(file)", hint: "give a file that this user may read"
                )
            }
            result.password = String(text.prefix { $0 != "\n" && $0 != "\r" && $0 != "\r\n" })
        } else if result.password == nil, let password = environment["REDISCLI_AUTH"], !password.isEmpty {
            result.password = password
        }
        return result
    }
}
