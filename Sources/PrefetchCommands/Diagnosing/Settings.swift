internal import FoundationEssentials
internal import Prefetch
internal import Redis

/// The effective settings and their origins: an option overrides the environment, that overrides this folder, that the default.
/// `docs/SETTINGS.md` has all of them.
struct Settings: Record {
    struct Setting: Record, Equatable {
        var name: String
        /// Nil if not set.
        var value: String?
        var origin: String

        static let fields: [Field<Setting>] = [
            .column("setting", \.name), Field("value", "value", \.value), Field("origin", "from", \.origin),
        ]
    }

    private let all: [Setting]
    private let unknown: [String]

    /// - Throws: `configuration` if one is invalid.
    init(_ location: RedisLocation, _ environment: [String: String]) throws(PrefetchError) {
        all = try Self.settings(location, environment)
        unknown = EnvironmentNames.warnings(environment)
    }

    static let fields: [Field<Settings>] =
        [.version]
        + [
            "redis", "cache", "state", "queue", "redis_password_file", "progress", "allow_net", "log_format",
        ].map { name in .ifKnown(name) { settings in settings.all.first { $0.name == name } } }

    var sheet: Sheet {
        var sheet = Sheet(self)
        sheet.add(table: all)
        sheet.add(unknown.map { "unknown: \($0)" })
        return sheet
    }

    /// All settings, each by the rule of the commands that use it.
    private static func settings(
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
        let isOurs = RunState.exists("./cache", in: location.stateFolder)
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
                : named("PREFETCH_CACHE") != nil ? "environment PREFETCH_CACHE" : "./cache has one"
        }
        var cache = setting(
            "cache", option: ("--cache", location.cache), variable: "PREFETCH_CACHE", otherwise: "./cache")
        if cache.origin == "default", isOurs { cache.origin = "./cache has a private Redis" }
        return [
            redis, cache,
            setting(
                "state", option: ("--state", location.state), variable: "PREFETCH_STATE",
                otherwise: StateFolder.ofUser.path),
            Setting(
                name: "queue", value: location.queue, origin: location.queue == "default" ? "default" : "--queue"),
            setting(
                "redis_password_file", option: ("--redis-password-file", location.redisPasswordFile),
                variable: "PREFETCH_REDIS_PASSWORD_FILE", otherwise: nil),
            setting("duckdb", option: nil, variable: "PREFETCH_DUCKDB", otherwise: "duckdb in PATH"),
            setting("progress", option: nil, variable: "PREFETCH_PROGRESS", otherwise: "auto"),
        ]
            + FetchSettings.variables.map {
                setting($0.name, option: nil, variable: $0.about.variable, otherwise: $0.about.usual)
            }
    }
}
