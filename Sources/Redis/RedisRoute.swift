/// Where a connection looks for its server: the address it was given, and of a Redis Cluster the nodes it has heard of.
struct RedisRoute {
    typealias Endpoint = RedisConfiguration.Endpoint

    /// How often in a row a connection lets itself be sent on: in a cluster that agrees with itself once is enough.
    static let mostRedirections = 5
    /// The most other nodes that are remembered.
    private static let mostNodes = 32

    /// The address a person gave: what is asked where nothing better is known.
    let given: Endpoint
    /// Where the connection was served last; nil where that is to be found out anew.
    private(set) var home: Endpoint?
    /// Nodes of the cluster, for the time when both are away: the replica that takes over from the only node a person named.
    private var others: [Endpoint] = []

    init(given: Endpoint) { self.given = given }

    /// Whom to ask, in this order.
    var candidates: [Endpoint] {
        var all: [Endpoint] = []
        for node in [home, given].compactMap({ $0 }) + others where !all.contains(node) { all.append(node) }
        return all
    }

    /// A node that serves us, and the nodes of its cluster.
    mutating func arrived(at node: Endpoint, nodes: [Endpoint]) {
        home = node
        if !nodes.isEmpty { others = Array(nodes.filter { $0 != given }.prefix(Self.mostNodes)) }
    }

    /// A node says that another one serves us.
    mutating func moved(to node: Endpoint) { home = node }

    /// A node did not answer: it is asked last from now on.
    mutating func failed(_ node: Endpoint) {
        if home == node { home = nil }
        guard let index = others.firstIndex(of: node) else { return }
        others.append(others.remove(at: index))
    }

    /// The node serves us no more, and did not say who does.
    mutating func forgetHome() { home = nil }
}
