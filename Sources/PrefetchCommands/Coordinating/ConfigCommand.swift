internal import ArgumentParser
internal import FoundationEssentials
internal import Prefetch
internal import Redis

/// `prefetch-coord config`: which settings hold here, and where each comes from.
struct ConfigCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config",
        abstract: "Tell which settings hold, and where each comes from.",
        usage: "prefetch-coord config [--show-origin] [<options>]",
        discussion: """
            Examples:
              prefetch-coord config --show-origin
              PREFETCH_CACHE=/srv/images prefetch-coord config --json | jq .cache

            An option is stronger than the environment, that than what lies in this folder,
            that than the default. Passwords are not told. Every other default is in the
            --help of its command.
            """)

    @Flag(help: "Where each value comes from.")
    var showOrigin = false

    @Flag(help: "One object of JSON, with the origins.")
    var json = false

    @OptionGroup(title: "Where") var location: RedisLocation

    /// A setting with its origin.
    struct Setting: Equatable {
        var name: String
        /// Nil where it is not set.
        var value: String?
        var origin: String
    }

    func run() throws {
        let environment = ProcessInfo.processInfo.environment
        let settings = try Self.settings(location, environment)
        let unknown = EnvironmentNames.warnings(environment)
        if json {
            let members = settings.map { setting in
                (
                    setting.name,
                    JSONText.object([
                        ("value", setting.value.map { .string($0) } ?? .null), ("origin", .string(setting.origin)),
                    ])
                )
            }
            Console.print(JSONText.object([("v", .int(1))] + members).text)
            return
        }
        let width = settings.map(\.name.utf8.count).max() ?? 0
        for setting in settings {
            let name = setting.name + String(repeating: " ", count: width - setting.name.utf8.count)
            let value = setting.value.map { TerminalText.escaped($0) } ?? "-"
            Console.print("\(name)  \(value)" + (showOrigin ? "  (\(TerminalText.escaped(setting.origin)))" : ""))
        }
        if showOrigin { for line in unknown { Console.print("unknown: \(line)") } }
    }

    private static func trust(
        _ location: RedisLocation, _ environment: [String: String]
    ) throws(PrefetchError) -> Setting {
        switch try RedisLocation.trust(isGiven: location.trustCache, environment: environment) {
        case .none: Setting(name: "trust_cache", value: "no", origin: "default")
        case .given: Setting(name: "trust_cache", value: "yes", origin: "--trust-cache")
        case .standing: Setting(name: "trust_cache", value: "yes", origin: "environment PREFETCH_TRUST_CACHE")
        }
    }

    /// All of them, each by the rule of the commands that use it.
    static func settings(
        _ location: RedisLocation, _ environment: [String: String]
    ) throws(PrefetchError) -> [Setting] {
        func named(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }
        func setting(_ name: String, option: (String, String?)?, variable: String, otherwise: String?) -> Setting {
            if let option, let value = option.1 { return Setting(name: name, value: value, origin: option.0) }
            if let value = named(variable) {
                return Setting(name: name, value: value, origin: "environment \(variable)")
            }
            return Setting(name: name, value: otherwise, origin: otherwise == nil ? "not set" : "default")
        }
        let isOurs = PrivateRedis.isOurs(cache: "./cache")
        var redis = Setting(name: "redis", value: nil, origin: "")
        switch try location.place() {
        case .server(let configuration):
            redis.value = configuration.redactedURL
            redis.origin =
                location.redis != nil
                ? "--redis"
                : ["PREFETCH_REDIS_URL", "REDIS_URL"].first { named($0) != nil }.map { "environment \($0)" }
                    ?? "default"
        case .cache(let folder):
            redis.value = "the private one of \(folder)"
            redis.origin =
                location.cache != nil
                ? "--cache"
                : named("PREFETCH_CACHE") != nil ? "environment PREFETCH_CACHE" : "./cache has one, used while it runs"
        }
        var cache = setting(
            "cache", option: ("--cache", location.cache), variable: "PREFETCH_CACHE", otherwise: "./cache")
        if cache.origin == "default", isOurs { cache.origin = "./cache has a private Redis" }
        return [
            redis, cache,
            Setting(
                name: "queue", value: location.queue, origin: location.queue == "default" ? "default" : "--queue"),
            setting(
                "redis_password_file", option: ("--redis-password-file", location.redisPasswordFile),
                variable: "PREFETCH_REDIS_PASSWORD_FILE", otherwise: nil),
            try trust(location, environment),
            setting("progress", option: nil, variable: "PREFETCH_PROGRESS", otherwise: "auto"),
            setting("allow_net", option: nil, variable: "PREFETCH_ALLOW_NET", otherwise: nil),
            setting("history", option: nil, variable: "PREFETCH_HISTORY", otherwise: nil),
            setting("log_format", option: nil, variable: "PREFETCH_LOG_FORMAT", otherwise: "text"),
        ]
    }
}
