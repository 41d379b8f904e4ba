import Testing

@testable import WebImage

@Suite("The rates of a host")
struct RateClockTests {
    @Test("Each rate of a host has its own clock, and who has two keeps to both without using up the faster one")
    func clocks() {
        let governor = HostGovernor(HostPolicy())
        func begins(_ rate: Double?, _ siteRate: Double? = nil, at now: Double) -> Bool {
            governor.mayBegin("a", rate: rate, siteRate: siteRate, running: 0, waiting: 1000, now: now)
        }
        // Of three kinds of URLs: with the site's rate, with a lower one of their own besides, and with a rate of another batch.
        var (site, both, other) = (0, 0, 0)
        var now = 5.0
        while now < 25 {
            if begins(2, 10, at: now) { both += 1 }
            while begins(10, at: now) { site += 1 }
            while begins(50, at: now) { other += 1 }
            #expect(begins(nil, at: now))
            now += 0.002
        }
        #expect((36...40).contains(both) && (185...200).contains(site + both) && (950...1000).contains(other))
    }

    @Test("Nothing is reserved for operations that have ended meanwhile, and those that come later are asked for anew")
    func dropped() throws {
        let governor = HostGovernor(HostPolicy(), isShared: true)
        #expect(!governor.mayBegin("a", rate: 20, running: 0, waiting: 300, now: 1))
        #expect(governor.takeMessages { _, _ in 0 }.hostRequests.isEmpty)
        #expect(!governor.mayBegin("a", rate: 20, running: 0, waiting: 3, now: 1))
        #expect(
            governor.takeMessages { _, _ in 3 }.hostRequests == [HostSlotRequest(host: "a", count: 3, rate: 20)])
        // Of two rates the lower one is reserved first, and of the higher one an instant at a time.
        #expect(!governor.mayBegin("b", rate: 1, siteRate: 20, running: 0, waiting: 300, now: 1))
        let first = governor.takeMessages { _, _ in 300 }.hostRequests
        #expect(first == [HostSlotRequest(host: "b", count: 1, rate: 1)])
        governor.grant(first[0], HostReservation(first: 1, interval: 1.1, count: 1), now: 1)
        #expect(!governor.mayBegin("b", rate: 1, siteRate: 20, running: 0, waiting: 300, now: 1))
        let second = governor.takeMessages { _, _ in 300 }.hostRequests
        #expect(second == [HostSlotRequest(host: "b", count: 1, rate: 20)])
        governor.grant(second[0], HostReservation(first: 1.2, interval: 0.06, count: 1), now: 1)
        #expect(!governor.mayBegin("b", rate: 1, siteRate: 20, running: 0, waiting: 300, now: 1.1))
        #expect(governor.mayBegin("b", rate: 1, siteRate: 20, running: 0, waiting: 300, now: 1.2))
    }
}
