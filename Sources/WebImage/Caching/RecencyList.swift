/// Images by key and in LRU order. Every operation takes constant time: links are indices into one array without holes.
struct RecencyList {
    private struct Node {
        let key: String
        var image: MemoryImage
        var newer = RecencyList.end
        var older = RecencyList.end
    }

    private static let end = -1

    private var nodes: [Node] = []
    private var places: [ByteText: Int] = [:]
    private var newest = end
    private var oldest = end
    private(set) var cost = 0

    var count: Int { nodes.count }

    func peek(_ key: String) -> MemoryImage? { places[key].map { nodes[$0].image } }

    mutating func use(_ key: String) -> MemoryImage? {
        guard let place = places[key] else { return nil }
        makeNewest(place)
        return nodes[place].image
    }

    mutating func insert(_ image: MemoryImage, forKey key: String) {
        cost += image.cost
        if let place = places[key] {
            cost -= nodes[place].image.cost
            nodes[place].image = image
            makeNewest(place)
        } else {
            places[key] = nodes.count
            nodes.append(Node(key: key, image: image))
            linkAsNewest(nodes.count - 1)
        }
    }

    mutating func remove(_ key: String) {
        if let place = places[key] { remove(at: place) }
    }

    mutating func removeOldest() {
        if oldest != Self.end { remove(at: oldest) }
    }

    private mutating func remove(at place: Int) {
        unlink(place)
        places[nodes[place].key] = nil
        cost -= nodes[place].image.cost
        // The last node fills the hole; update the links to it.
        let last = nodes.removeLast()
        guard place < nodes.count else { return }
        nodes[place] = last
        places[last.key] = place
        if last.newer == Self.end { newest = place } else { nodes[last.newer].older = place }
        if last.older == Self.end { oldest = place } else { nodes[last.older].newer = place }
    }

    private mutating func makeNewest(_ place: Int) {
        guard place != newest else { return }
        unlink(place)
        linkAsNewest(place)
    }

    private mutating func unlink(_ place: Int) {
        let (newer, older) = (nodes[place].newer, nodes[place].older)
        if newer == Self.end { newest = older } else { nodes[newer].older = older }
        if older == Self.end { oldest = newer } else { nodes[older].newer = newer }
    }

    private mutating func linkAsNewest(_ place: Int) {
        nodes[place].newer = Self.end
        nodes[place].older = newest
        if newest == Self.end { oldest = place } else { nodes[newest].newer = place }
        newest = place
    }
}
