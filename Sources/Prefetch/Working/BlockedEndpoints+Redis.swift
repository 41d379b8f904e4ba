internal import Redis
internal import WebImage

extension BlockedEndpoints {
    /// Blocks the addresses of the queue's Redis: URLs of a list must not reach it, even if the operator has allowed the network.
    func close(_ places: Set<RedisAddress>) {
        for place in places {
            switch place.host {
            case .named(let host): close(host, port: place.port, reason: "the queue's Redis")
            case .thisMachine: blockOnThisMachine(port: place.port, reason: "the queue's Redis")
            }
        }
    }
}
