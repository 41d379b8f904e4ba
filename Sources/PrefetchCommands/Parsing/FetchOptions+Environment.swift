internal import FoundationEssentials
internal import Prefetch
internal import WebImage

extension FetchOptions {
    /// The private networks that are open: those of `--allow-net`, and those of PREFETCH_ALLOW_NET, between commas or blanks, which a
    /// container or a service has where its network is set up.
    /// - Throws: `configuration` where the variable names something else.
    func openNetworks(
        environment: [String: String] = ProcessInfo.processInfo.environment
    ) throws(PrefetchError) -> [CIDR] {
        let words = (environment["PREFETCH_ALLOW_NET"] ?? "").split { $0 == "," || $0.isWhitespace }
        var networks = allowNet.compactMap { CIDR($0) }
        for word in words {
            guard let network = CIDR(String(word)) else {
                throw PrefetchError(
                    .configuration,
                    "PREFETCH_ALLOW_NET has '\(TerminalText.escaped(String(word)))', which is no network",
                    hint: "name addresses or networks such as 10.0.0.0/8, with commas between")
            }
            networks.append(network)
        }
        return networks
    }
}
