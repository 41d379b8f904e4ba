import Testing

@testable import WebImage

@Suite("Limits and parts of one host", .timeLimit(.minutes(5)))
struct HostLimitTests {
    @Test("Of the limits of a host's elements the lowest holds while it has any")
    func lowestLimit() {
        var queue = DownloadQueue<Int>(order: .fifo)
        queue.enqueue(0, host: "a", priority: 1, limits: HostLimits(transfers: 3))
        queue.enqueue(1, host: "a", priority: 1, limits: HostLimits(transfers: 1))
        #expect(queue.next() == 0 && queue.next() == nil)
        queue.release(host: "a")
        #expect(queue.next() == 1)
        queue.release(host: "a")
        for number in 2..<5 { queue.enqueue(number, host: "a", priority: 1, limits: HostLimits(transfers: 2)) }
        #expect(queue.next() == 2 && queue.next() == 3 && queue.next() == nil)
    }

    @Test(
        "A part of a host's transfers is asked for once, said again when it is too much or too little, and given back")
    func shares() {
        let shares = HostShares()
        func hostRequests(_ running: Int, _ waiting: Int) -> [HostShareRequest] {
            shares.takeRequests { _ in (running, waiting) }
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
        shares.grant("a", 2, load: (0, 5), now: 1, random: 0.5)
        #expect(begins(1, 1) && !begins(2, 1))
        // There may be more a moment later, and less often where there was none.
        #expect(shares.nextWake > 1 && shares.nextWake <= 1.3)
        shares.wake(now: 1.3)
        #expect(hostRequests(2, 3) == wish(2, 3))
        shares.grant("a", 1, load: (2, 3), now: 1.3, random: 0.5)
        // More than its part is under way: with the first that ends it says so at once.
        #expect(!begins(2, 1.3))
        shares.didEnd("a", load: (1, 3), now: 1.4)
        #expect(hostRequests(1, 3) == wish(1, 3))
        shares.grant("a", 3, load: (1, 3), now: 1.4, random: 0.5)
        #expect(begins(2, 1.4))
        // What it holds is said again after some seconds.
        shares.wake(now: 6.3)
        #expect(!shares.hasRequests && abs(shares.nextWake - 6.4) < 0.01)
        // What it needs no more goes back after a moment, and then it is forgotten.
        shares.didEnd("a", load: (1, 0), now: 6.3)
        shares.wake(now: 6.35)
        #expect(!shares.hasRequests)
        shares.wake(now: 6.41)
        #expect(hostRequests(1, 0) == wish(1, 1))
        shares.grant("a", 1, load: (1, 0), now: 6.5, random: 0.5)
        shares.didEnd("a", load: (0, 0), now: 6.6)
        shares.wake(now: 6.71)
        #expect(hostRequests(0, 0) == wish(0, 0))
        shares.grant("a", 0, load: (0, 0), now: 6.8, random: 0.5)
        shares.reportAgain()
        #expect(!shares.hasRequests)
    }
}
