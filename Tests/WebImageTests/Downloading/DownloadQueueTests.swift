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
        for name in ["a1", "a2", "a3", "b1"] {
            queue.enqueue(name, host: String(name.prefix(1)), priority: 1, limits: HostLimits(transfers: 1))
        }
        #expect(drain(&queue) == ["a1", "b1"])
        queue.release(host: "b")
        #expect(queue.next() == nil)
        queue.release(host: "a")
        #expect(drain(&queue) == ["a2"])
        queue.release(host: "a")
        #expect(drain(&queue) == ["a3"])
    }

    @Test("A host that comes first gets the next slot, but for one of 17")
    func comesFirst() {
        var queue = DownloadQueue<String>(order: .fifo)
        for number in 1...40 {
            for host in ["a", "b"] {
                queue.enqueue("\(host)\(number)", host: host, priority: 1, limits: HostLimits(transfers: 10))
            }
        }
        queue.enqueue("high", host: "c", priority: 0, limits: HostLimits(transfers: 10))
        #expect(queue.next() == "high")
        #expect(queue.next() == "a1")
        for number in 2...17 {
            queue.release(host: "a", comesFirst: true)
            #expect(queue.next() == "a\(number)")
        }
        queue.release(host: "a", comesFirst: true)
        #expect(queue.next() == "b1")
        queue.release(host: "b")
        #expect(queue.next() == "b2")
        // Not before a higher priority.
        queue.release(host: "b", comesFirst: true)
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
        var queue = DownloadQueue<String>(order: order)
        var waiting: Set<String> = []
        var running: [String: Int] = [:]
        for index in 0..<20_000 {
            let host = "\(random(7))"
            switch random(3) {
            case 0:
                queue.enqueue(
                    "\(host) \(index)", host: host, priority: random(3), limits: HostLimits(transfers: 2),
                    at: [.first, .last, .inOrder, .inOrder, .inOrder][random(5)])
                waiting.insert("\(host) \(index)")
            case 1:
                if let next = queue.next() {
                    #expect(waiting.remove(next) != nil)
                    running[String(next.prefix(1)), default: 0] += 1
                    #expect(running[String(next.prefix(1)), default: 0] <= 2)
                } else {
                    #expect(waiting.allSatisfy { running[String($0.prefix(1)), default: 0] == 2 })
                }
            default:
                if running[host, default: 0] > 0 {
                    running[host, default: 0] -= 1
                    queue.release(host: host)
                }
            }
        }
        while !waiting.isEmpty {
            for (host, count) in running { for _ in 0..<count { queue.release(host: host) } }
            running = [:]
            while let next = queue.next() {
                #expect(waiting.remove(next) != nil)
                running[String(next.prefix(1)), default: 0] += 1
            }
        }
    }
}
