/// Candidate servers of a connection: the configured address, and the known nodes of a Redis Cluster.
struct RedisRoute {
    typealias Endpoint = RedisConfiguration.Endpoint

    /// Maximum consecutive redirections; one is enough in a consistent cluster.
    static let maxRedirections = 5
    private static let maxNodes = 32

    let given: Endpoint
    /// The node that served the connection last; nil if it has to be found again.
    private(set) var home: Endpoint?
    /// Other nodes of the cluster, in case both are down: the replica that takes over from the only configured node.
    private var others: [Endpoint] = []

    init(given: Endpoint) { self.given = given }

    var candidates: [Endpoint] {
        var all: [Endpoint] = []
        for node in [home, given].compactMap({ $0 }) + others where !all.contains(node) { all.append(node) }
        return all
    }

    mutating func arrived(at node: Endpoint, nodes: [Endpoint]) {
        home = node
        if !nodes.isEmpty { others = Array(nodes.filter { $0 != given }.prefix(Self.maxNodes)) }
    }

    mutating func moved(to node: Endpoint) { home = node }

    /// Moves an unreachable node to the end of the list.
    mutating func failed(_ node: Endpoint) {
        if home == node { home = nil }
        guard let index = others.firstIndex(of: node) else { return }
        others.append(others.remove(at: index))
    }

    /// The node no longer serves us and did not redirect.
    mutating func clearHome() { home = nil }
}
