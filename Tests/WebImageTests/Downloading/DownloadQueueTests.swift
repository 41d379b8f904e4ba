import Testing

@testable import WebImage

@Suite("DownloadQueue", .timeLimit(.minutes(5)))
struct DownloadQueueTests {
    private func drain(_ queue: inout DownloadQueue<String>) -> [String] {
        var all: [String] = []
        while let next = queue.next() { all.append(next) }
        return all
    }

    @Test("Order is exact over all hosts", arguments: DownloadExecutionOrder.allCases)
    func order(order: DownloadExecutionOrder) {
        var queue = DownloadQueue<String>(order: order)
        for name in ["a1", "a2", "b1", "a3", "c1", "b2"] {
            queue.enqueue(name, host: String(name.prefix(1)), priority: 1, limits: HostLimits(transfers: 10))
        }
        let all = ["a1", "a2", "b1", "a3", "c1", "b2"]
        #expect(drain(&queue) == (order == .fifo ? all : all.reversed()))
        #expect(queue.next() == nil)
    }

    @Test("Priorities go before order")
    func priorities() {
        var queue = DownloadQueue<String>(order: .fifo)
        queue.enqueue("low", host: "a", priority: 2, limits: HostLimits(transfers: 10))
        queue.enqueue("normal", host: "b", priority: 1, limits: HostLimits(transfers: 10))
        queue.enqueue("high", host: "a", priority: 0, limits: HostLimits(transfers: 10))
        #expect(drain(&queue) == ["high", "normal", "low"])
    }

    @Test("A host at its limit delays only itself")
    func limits() {
        var queue = DownloadQueue<String>(order: .fifo)
        var places: [String: DownloadQueue<String>.Place] = [:]
        for name in ["a1", "a2", "a3", "b1"] {
            places[name] = queue.enqueue(
                name, host: String(name.prefix(1)), priority: 1, limits: HostLimits(transfers: 1))
        }
        #expect(drain(&queue) == ["a1", "b1"])
        queue.release(places["b1"]!)
        #expect(queue.next() == nil)
        queue.release(places["a1"]!)
        #expect(drain(&queue) == ["a2"])
        queue.release(places["a2"]!)
        #expect(drain(&queue) == ["a3"])
    }

    @Test("A host that comes first gets the next slot, but for one of 17")
    func comesFirst() {
        var queue = DownloadQueue<String>(order: .fifo)
        var places: [String: DownloadQueue<String>.Place] = [:]
        for number in 1...40 {
            for host in ["a", "b"] {
                // Also where its elements have different limits.
                let limits = HostLimits(transfers: 10, rate: number % 3 == 0 ? 1 : nil)
                places["\(host)\(number)"] = queue.enqueue("\(host)\(number)", host: host, priority: 1, limits: limits)
            }
        }
        queue.enqueue("high", host: "c", priority: 0, limits: HostLimits(transfers: 10))
        #expect(queue.next() == "high")
        #expect(queue.next() == "a1")
        for number in 2...17 {
            queue.release(places["a\(number - 1)"]!, comesFirst: true)
            #expect(queue.next() == "a\(number)")
        }
        queue.release(places["a17"]!, comesFirst: true)
        #expect(queue.next() == "b1")
        queue.release(places["b1"]!)
        #expect(queue.next() == "b2")
        // Not before a higher priority.
        queue.release(places["b2"]!, comesFirst: true)
        queue.enqueue("high", host: "c", priority: 0, limits: HostLimits(transfers: 10))
        #expect(queue.next() == "high")
        #expect(queue.next() == "b3")
    }

    @Test("What goes first goes first, and what goes last last", arguments: DownloadExecutionOrder.allCases)
    func goesFirst(order: DownloadExecutionOrder) {
        var queue = DownloadQueue<String>(order: order)
        queue.enqueue("b1", host: "b", priority: 1, limits: HostLimits(transfers: 9))
        queue.enqueue("a1", host: "a", priority: 1, limits: HostLimits(transfers: 9))
        queue.enqueue("a2", host: "a", priority: 1, limits: HostLimits(transfers: 9))
        queue.enqueue("r", host: "a", priority: 1, limits: HostLimits(transfers: 9), at: .first)
        queue.enqueue("l", host: "a", priority: 1, limits: HostLimits(transfers: 9), at: .last)
        #expect(drain(&queue) == (order == .fifo ? ["r", "b1", "a1", "a2", "l"] : ["r", "a2", "a1", "b1", "l"]))
    }

    @Test("What is removed leaves at once, from wherever it is, and the order of the others stays")
    func removes() {
        var queue = DownloadQueue<String>(order: .fifo)
        let names = (0..<1000).map { "a\($0)" }
        let places = names.map { queue.enqueue($0, host: "a", priority: 1, limits: HostLimits(transfers: 2000)) }
        var left = names
        for index in names.indices.shuffled().prefix(900) {
            queue.remove(places[index])
            queue.remove(places[index])
            left.removeAll { $0 == names[index] }
            #expect(queue.load(host: "a").waiting == left.count)
        }
        #expect(drain(&queue) == left)
        // What has a slot does not wait.
        queue.remove(places[names.firstIndex(of: left[0])!])
        #expect(queue.load(host: "a").running == 100)
    }

    @Test(
        "Nothing is lost or doubled, and no limit passed, whatever happens in whatever order",
        arguments: DownloadExecutionOrder.allCases)
    func random(order: DownloadExecutionOrder) {
        let seed = UInt64.random(in: 0 ... .max)
        print("DownloadQueueTests seed \(seed)")
        var state = seed | 1
        func random(_ range: Int) -> Int {
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            return Int(state % UInt64(range))
        }
        let kinds = [
            HostLimits(transfers: 1), HostLimits(transfers: 2), HostLimits(transfers: 2, rate: 5),
            HostLimits(transfers: 4),
        ]
        struct Item: Hashable {
            let host: String, limits: HostLimits, number: Int
        }
        var queue = DownloadQueue<Item>(order: order)
        var places: [Item: DownloadQueue<Item>.Place] = [:]
        var (waiting, running): (Set<Item>, Set<Item>) = ([], [])
        func mayStart(_ item: Item) -> Bool {
            let own = running.filter { $0.host == item.host }
            let most = (own + waiting.filter { $0.host == item.host }).map(\.limits.transfers).max() ?? 0
            return own.count < most
                && own.count { $0.limits.transfers == item.limits.transfers } < item.limits.transfers
        }
        func start(_ item: Item) {
            #expect(waiting.contains(item) && mayStart(item))
            waiting.remove(item)
            running.insert(item)
        }
        for number in 0..<20_000 {
            switch random(4) {
            case 0:
                let item = Item(host: "\(random(7))", limits: kinds[random(kinds.count)], number: number)
                places[item] = queue.enqueue(
                    item, host: item.host, priority: random(3), limits: item.limits,
                    at: [.first, .last, .inOrder, .inOrder, .inOrder][random(5)])
                waiting.insert(item)
            case 1:
                if let next = queue.next() { start(next) } else { #expect(!waiting.contains(where: mayStart)) }
            case 2:
                if random(2) == 0, let item = waiting.randomElement() {
                    waiting.remove(item)
                    queue.remove(places[item]!)
                }
            default:
                if let item = running.randomElement() {
                    running.remove(item)
                    queue.release(places[item]!, comesFirst: random(4) == 0)
                }
            }
        }
        while !waiting.isEmpty {
            for item in running { queue.release(places[item]!) }
            running = []
            let before = waiting.count
            while let next = queue.next() { start(next) }
            #expect(waiting.count < before)
            guard waiting.count < before else { return }
        }
    }
}
