internal import ArgumentParser
internal import FoundationEssentials
internal import Prefetch

extension RedisLocation {
    /// Whether the cache folder was named, by an option or the environment. For one that only lies here nothing is started.
    var namesCache: Bool {
        cache != nil || ProcessInfo.processInfo.environment["PREFETCH_CACHE"].map { !$0.isEmpty } == true
    }

    /// On what terms the private Redis of the cache folder is used.
    /// - Throws: `configuration` where PREFETCH_TRUST_CACHE is neither yes nor no.
    func admission() throws(PrefetchError) -> CacheAdmission {
        var admission = CacheAdmission(
            trust: try Self.trust(isGiven: trustCache), state: .ofUser, notice: { Console.note("warning: \($0)") })
        admission.startsServer = namesCache
        return admission
    }

    /// Who vouches for a cache folder: the option, or the environment.
    /// - Throws: `configuration` where the variable says neither.
    static func trust(
        isGiven: Bool, environment: [String: String] = ProcessInfo.processInfo.environment
    ) throws(PrefetchError) -> CacheAdmission.Trust {
        switch environment["PREFETCH_TRUST_CACHE"]?.lowercased() {
        case "1", "true", "yes", "on": return .standing
        case nil, "", "0", "false", "no", "off": return isGiven ? .given : .none
        case let word?:
            throw PrefetchError(
                .configuration,
                "PREFETCH_TRUST_CACHE is '\(TerminalText.escaped(word))', which is neither yes nor no",
                hint: "set it to 1, or take it away")
        }
    }
}

/// `--trust-cache`, which `run` has as well as the commands that look for a Redis.
enum TrustOption {
    static var help: ArgumentHelp {
        "Use the queue in the cache folder though it was not made by this user on this machine, and count it as made here from now on; without this it is moved aside."
    }
}
