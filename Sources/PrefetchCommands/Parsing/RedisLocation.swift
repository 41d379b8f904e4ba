internal import FoundationEssentials
package import Prefetch
internal import Redis
internal import WebImage

/// Which Redis a command talks to: `--redis`, `--cache`, then PREFETCH_REDIS_URL, PREFETCH_CACHE, REDIS_URL, then `./cache` if it
/// was used by runs of this user, then a Redis on this machine.
struct RedisLocation: SettingRecord, SettingGroup {
    var redis: String?
    var cache: String?
    var queue = "default"
    var state: String?
    var redisPasswordFile: String?
    private var redisCaFile: String?
    private var redisCert: String?
    private var redisKey: String?
    private var redisSni: String?

    static let settings: [Setting<RedisLocation>] = [
        Setting(
            "--redis", \.redis, .text("url"),
            "Redis of the queue: redis://[user[:password]@]host[:port][/db], rediss:// (TLS) or unix:///path?db=1; any node of a cluster."
        ),
        Setting(
            "--cache", \.cache, .folder,
            "Cache folder; its private Redis is used if --redis is not given. (default: PREFETCH_CACHE, or ./cache after a run)"
        ),
        Setting(
            "--queue", \.queue,
            .text(
                "name", rule: "is 1 to 64 letters, digits, '_' or '-'", where: PrefetchQueue.isValidName),
            "Queue in Redis."),
        Setting("--state", \.state, .folder, StateOption.about),
        Setting(
            "--redis-password-file", \.redisPasswordFile, .text("file"), is: .file,
            "File with the password of Redis."),
        Setting(
            "--redis-ca-file", \.redisCaFile, .text("file"), is: .file,
            "rediss://: certificate authorities that Redis is verified with. (default: the system's)"),
        Setting(
            "--redis-cert", \.redisCert, .text("file"), is: .file,
            "rediss://: client certificate, if Redis asks for one."),
        Setting(
            "--redis-key", \.redisKey, .text("file"), is: .file, "rediss://: key of the client certificate."),
        Setting(
            "--redis-sni", \.redisSni, .text("host"),
            "rediss://: name in the certificate of Redis, if it is not the host."),
    ]

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
        guard case .cache(let folder) = place, !RunState.exists(folder, in: stateFolder) else { return place }
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
        if RunState.exists("./cache", in: stateFolder) { return .cache("./cache") }
        var usual = try configuration("redis://127.0.0.1:6379/0")
        usual.unavailableHint = "name the cache of your run: --cache DIR; or the Redis of your queue: --redis URL"
        return .server(usual)
    }

    /// The folder of images a command works with, where one was named.
    var cacheFolder: String? {
        cache ?? ProcessInfo.processInfo.environment["PREFETCH_CACHE"]
            ?? (RunState.exists("./cache", in: stateFolder) ? "./cache" : nil)
    }

    /// The options of TLS that were given.
    private var tlsOptions: [(name: String, value: String)] {
        [
            ("--redis-ca-file", redisCaFile), ("--redis-cert", redisCert), ("--redis-key", redisKey),
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
            tls.caFile = redisCaFile ?? tls.caFile
            tls.certificateFile = redisCert ?? tls.certificateFile
            tls.keyFile = redisKey ?? tls.keyFile
            tls.serverName = redisSni ?? tls.serverName
            do throws(RedisError) { try tls.validate() } catch { throw PrefetchError(error) }
            result.tls = tls
        }
        // OpenSSL looks at SSL_CERT_FILE itself, but not where other distributions than its own have theirs.
        result.authorities = TrustedAuthorities.file(["SSL_CERT_FILE"])
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

// MARK: - Words

extension RedisLocation {
    /// What a command needs to find the same queue and cache, as it has to be typed, with a blank in front; without passwords.
    var words: String {
        var words = ""
        if let redis, let configuration = try? configuration(redis) {
            words += " --redis \(Shell.quoted(configuration.redactedURL))"
        }
        if let redisPasswordFile { words += " --redis-password-file \(Shell.quoted(Shell.path(redisPasswordFile)))" }
        if let cache { words += " --cache \(Shell.quoted(Shell.path(cache)))" }
        if let state { words += " --state \(Shell.quoted(Shell.path(state)))" }
        return words + (queue == "default" ? "" : " --queue \(queue)")
    }
}

// MARK: - State

extension RedisLocation {
    /// Where the state of runs is.
    var stateFolder: StateFolder { StateOption.folder(state) }

    /// The state of a cache's runs, created if missing.
    func runState(of cache: String) throws(PrefetchError) -> RunState {
        try RunState.open(cache, in: stateFolder) { Console.note("note: \($0)") }
    }
}

/// `--state`, which `run` has as well as the commands that look for a Redis.
package enum StateOption {
    static let about =
        "Folder for what runs keep: private Redis, copies of lists. (default: PREFETCH_STATE, or ~/.local/state/prefetch)"

    /// The option, or what the environment says.
    package static func folder(_ given: String?) -> StateFolder {
        let named = ProcessInfo.processInfo.environment["PREFETCH_STATE"].flatMap { $0.isEmpty ? nil : $0 }
        return (given ?? named).map { StateFolder(path: $0) } ?? .ofUser
    }
}
