import Testing

@testable import WebImage

@Suite("Limits and parts of one host", .timeLimit(.minutes(5)))
struct HostLimitTests {
    /// Enqueues elements of host `a`.
    private func fill(
        _ queue: inout DownloadQueue<Int>, _ elements: Range<Int>, _ limits: HostLimits
    ) -> [Int: DownloadQueue<Int>.Place] {
        var places: [Int: DownloadQueue<Int>.Place] = [:]
        for element in elements { places[element] = queue.enqueue(element, host: "a", priority: 1, limits: limits) }
        return places
    }

    @Test("A limit of transfers binds those that have it, whatever their rate, and the highest one all together")
    func limitsOfTheirOwn() throws {
        var queue = DownloadQueue<Int>(order: .fifo)
        func drain() -> [Int] {
            var all: [Int] = []
            while let next = queue.next() { all.append(next) }
            return all
        }
        var places = fill(&queue, 0..<3, HostLimits(transfers: 1))
        places.merge(fill(&queue, 3..<9, HostLimits(transfers: 3))) { $1 }
        places.merge(fill(&queue, 9..<11, HostLimits(transfers: 3, rate: 5))) { $1 }
        #expect(drain() == [0, 3, 4])
        queue.release(places[3]!)
        #expect(drain() == [5])
        queue.release(places[0]!)
        #expect(drain() == [1])
        var load = queue.load(host: "a") { $0.transfers == 3 }
        #expect(load.running == 2 && load.waiting == 5)
        load = queue.load(host: "a") { $0.uses(5) }
        #expect(load.running == 0 && load.waiting == 2)
        // What waited last is all that is left: its limit is the highest now.
        for element in [2, 6, 7, 8, 9, 10] { queue.remove(places[element]!) }
        for element in [1, 4, 5] { queue.release(places[element]!) }
        load = queue.load(host: "a")
        #expect(load.running == 0 && load.waiting == 0)
        _ = fill(&queue, 20..<29, HostLimits(transfers: 2))
        #expect(drain() == [20, 21])
    }

    @Test("Who is declined holds back none that have other limits, and is asked again when its host is let go")
    func declined() {
        var queue = DownloadQueue<Int>(order: .fifo)
        _ = fill(&queue, 0..<2, HostLimits(transfers: 9, rate: 1))
        _ = fill(&queue, 2..<4, HostLimits(transfers: 9))
        var asked: [Double?] = []
        func next(_ admits: Bool) -> Int? {
            queue.next(admits: { load in
                asked.append(load.limits.rate)
                return admits || load.limits.rate == nil ? .next : .no
            })
        }
        #expect(next(false) == 2 && next(false) == 3 && next(true) == nil)
        queue.letGo(host: "a")
        #expect(next(true) == 0 && next(true) == 1)
        #expect(asked == [1, nil, nil, 1, 1])
    }

    @Test("Of a host's lines that with an element that is preferred goes first")
    func preferred() {
        var queue = DownloadQueue<Int>(order: .fifo)
        _ = fill(&queue, 0..<3, HostLimits(transfers: 9, rate: 1))
        _ = fill(&queue, 3..<6, HostLimits(transfers: 9))
        func next() -> Int? {
            queue.next(prefers: { _ in { $0 == 4 } }, admits: { _ in .any(of: { $0 == 4 }) })
        }
        #expect(next() == 4)
        // Then all are alike.
        queue.letGo(host: "a")
        var rest: [Int] = []
        while let element = next() { rest.append(element) }
        #expect(rest.sorted() == [0, 1, 2, 3, 5])
    }

    @Test(
        "Of its own rate and its site's each request keeps to both, without a word of a rate that follows from the other"
    )
    func rates() {
        #expect(HostLimits(transfers: 0) == HostLimits(transfers: 1))
        #expect(HostLimits(transfers: 6, rate: 50, siteRate: 10) == HostLimits(transfers: 6, rate: 10))
        let both = HostLimits(transfers: 6, rate: 2, siteRate: 10)
        #expect(both.rate == 2 && both.siteRate == 10 && both.uses(2) && both.uses(10) && !both.uses(5))
    }

    @Test(
        "A part of a host's transfers is asked for once, said again when it is too much or too little, and given back")
    func shares() {
        let shares = HostShares()
        func hostRequests(_ running: Int, _ waiting: Int) -> [HostShareRequest] {
            shares.takeRequests { _, _ in (running, waiting) }
        }
        func begins(_ running: Int, _ now: Double) -> Bool {
            shares.mayBegin("a", limit: 3, running: running, now: now)
        }
        func wish(_ running: Int, _ wanted: Int) -> [HostShareRequest] {
            [HostShareRequest(host: "a", limit: 3, running: running, wanted: wanted)]
        }
        let isOpen = shares.mayBegin("open", limit: .max, running: 99, now: 0)
        #expect(isOpen && !shares.hasRequests)
        #expect(!begins(0, 0) && shares.hasRequests)
        #expect(hostRequests(0, 5) == wish(0, 3) && !shares.hasRequests)
        // While the answer is on its way nothing more is asked.
        #expect(!begins(0, 0) && !shares.hasRequests)
        shares.grant("a", limit: 3, 2, load: (0, 5), now: 1, random: 0.5)
        #expect(begins(1, 1) && !begins(2, 1))
        // There may be more a moment later, and less often where there was none.
        #expect(shares.nextWake > 1 && shares.nextWake <= 1.3)
        shares.wake(now: 1.3)
        #expect(hostRequests(2, 3) == wish(2, 3))
        shares.grant("a", limit: 3, 1, load: (2, 3), now: 1.3, random: 0.5)
        // More than its part is in flight: with the first that ends it says so at once.
        #expect(!begins(2, 1.3))
        shares.didEnd("a", limit: 3, load: (1, 3), now: 1.4)
        #expect(hostRequests(1, 3) == wish(1, 3))
        shares.grant("a", limit: 3, 3, load: (1, 3), now: 1.4, random: 0.5)
        #expect(begins(2, 1.4))
        // What it holds is said again after some seconds.
        shares.wake(now: 6.3)
        #expect(!shares.hasRequests && abs(shares.nextWake - 6.4) < 0.01)
        // What it needs no more goes back after a moment, and then it is forgotten.
        shares.didEnd("a", limit: 3, load: (1, 0), now: 6.3)
        shares.wake(now: 6.35)
        #expect(!shares.hasRequests)
        shares.wake(now: 6.41)
        #expect(hostRequests(1, 0) == wish(1, 1))
        shares.grant("a", limit: 3, 1, load: (1, 0), now: 6.5, random: 0.5)
        shares.didEnd("a", limit: 3, load: (0, 0), now: 6.6)
        shares.wake(now: 6.71)
        #expect(hostRequests(0, 0) == wish(0, 0))
        shares.grant("a", limit: 3, 0, load: (0, 0), now: 6.8, random: 0.5)
        shares.reportAgain()
        #expect(!shares.hasRequests)
    }

    @Test("Each limit has a share of its own; a new one has the others told at once, the poorest first")
    func sharesOfLimits() {
        let shares = HostShares()
        func loads(_ host: String, _ limit: Int) -> HostShares.Load { limit == 6 ? (6, 3) : (0, 9) }
        #expect(!shares.mayBegin("a", limit: 6, running: 0, now: 0))
        #expect(shares.takeRequests { _, _ in (0, 9) }.map(\.wanted) == [6])
        shares.grant("a", limit: 6, 6, load: (0, 9), now: 0, random: 0.5)
        #expect(shares.mayBegin("a", limit: 6, running: 5, now: 0))
        #expect(!shares.mayBegin("a", limit: 2, running: 0, now: 1))
        let asked = shares.takeRequests(loads)
        #expect(
            asked == [
                HostShareRequest(host: "a", limit: 2, running: 0, wanted: 2),
                HostShareRequest(host: "a", limit: 6, running: 6, wanted: 6),
            ])
        shares.grant("a", limit: 2, 0, load: (0, 9), now: 1, random: 0.5)
        shares.grant("a", limit: 6, 4, load: (6, 3), now: 1, random: 0.5)
        #expect(
            !shares.mayBegin("a", limit: 6, running: 5, now: 1) && shares.mayBegin("a", limit: 6, running: 3, now: 1))
        // What waited has ended: its share goes back a moment later, though none of its transfers has ended.
        shares.grant("a", limit: 2, 2, load: (0, 9), now: 2, random: 0.5)
        shares.didLeave("a", limit: 2, load: (0, 0), now: 2)
        shares.wake(now: 2.11)
        let left = shares.takeRequests { _, limit in limit == 6 ? (3, 3) : (0, 0) }
        #expect(left.contains(HostShareRequest(host: "a", limit: 2, running: 0, wanted: 0)), "\(left)")
    }
}
