internal import Redis
internal import WebImage

extension ClosedPlaces {
    /// Closes where the queue's Redis listens: a URL of a list must not speak to it, whatever network the operator has opened.
    func close(_ places: Set<RedisPlace>) {
        for place in places {
            switch place.host {
            case .named(let host): close(host, port: place.port, reason: "the queue's Redis")
            case .thisMachine: closeOnThisMachine(port: place.port, reason: "the queue's Redis")
            }
        }
    }
}
