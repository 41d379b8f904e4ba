internal import FoundationEssentials
internal import Prefetch
internal import WebImage

extension FetchOptions {
    /// The networks that are open and those that are closed: of `--allow-net` and `--deny-net`, and of PREFETCH_ALLOW_NET and
    /// PREFETCH_DENY_NET, between commas or blanks, which a container or a service has where its network is set up.
    /// - Throws: `configuration` where a variable names something else.
    func addressPolicy(
        environment: [String: String] = ProcessInfo.processInfo.environment
    ) throws(PrefetchError) -> AddressPolicy {
        AddressPolicy(
            allow: try Self.networks(allowNet, and: "PREFETCH_ALLOW_NET", environment),
            deny: try Self.networks(denyNet, and: "PREFETCH_DENY_NET", environment))
    }

    private static func networks(
        _ options: [String], and variable: String, _ environment: [String: String]
    ) throws(PrefetchError) -> [CIDR] {
        var networks = options.compactMap { CIDR($0) }
        for word in (environment[variable] ?? "").split(whereSeparator: { $0 == "," || $0.isWhitespace }) {
            guard let network = CIDR(String(word)) else {
                throw PrefetchError(
                    .configuration, "\(variable) has '\(TerminalText.escaped(String(word)))', which is no network",
                    hint: "name addresses or networks such as 10.0.0.0/8, with commas between")
            }
            networks.append(network)
        }
        return networks
    }
}
