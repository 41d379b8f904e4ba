import Testing

@testable import WebImage

@Suite("A share in the bytes of several processes, by a clock of the test's own")
struct BandwidthLeaseTests {
    /// Bytes that each takes in ten seconds, where those with `true` take what they can get and the others nothing.
    private func taken(_ wants: [Bool]) -> [Int] {
        var schedule = RateSchedule()
        var leases = wants.map { _ in BandwidthLease(bytesPerSecond: 1_000_000) }
        var sums = wants.map { _ in 0 }
        var now = 100.0
        while now < 110 {
            for index in leases.indices where wants[index] {
                leases[index].fill(now: now)
                if leases[index].level > 0 {
                    leases[index].take(16_384)
                    sums[index] += 16_384
                } else {
                    leases[index].want()
                }
                guard leases[index].isRequesting(now: now) else { continue }
                let wish = leases[index].takeRequest()
                #expect(wish.host == "#bytes" && !leases[index].isRequesting(now: now))
                let answer = schedule.reserve(wish.count, rate: wish.rate, now: now)
                leases[index].grant(answer, now: now, random: 0.5)
            }
            now += 0.001
        }
        return sums
    }

    @Test("Who is alone has all of it, several have all of it together, and none of them little", arguments: 1...4)
    func shares(count: Int) {
        let sums = taken((0..<4).map { $0 < count })
        let sum = sums.reduce(0, +)
        #expect(sum <= 10_000_000 + count * 16_384 && sum >= 9_000_000, "\(sums)")
        for index in 0..<count { #expect(sums[index] >= 10_000_000 / count / 4, "\(sums)") }
    }

    @Test("Pieces that nobody wanted are not saved up, and what came too early is waited out")
    func lost() {
        var lease = BandwidthLease(bytesPerSecond: 1_000_000)
        lease.want()
        #expect(lease.isRequesting(now: 0))
        _ = lease.takeRequest()
        #expect(lease.nextTime(now: 0) == .infinity)
        lease.grant(HostReservation(first: 1, interval: 0.05, count: 4), now: 0, random: 0)
        #expect(lease.nextTime(now: 0) == 1)
        lease.fill(now: 0.9)
        #expect(lease.level == 0)
        lease.fill(now: 1)
        #expect(lease.level == 50_000)
        // The second and the third pass while there is room.
        lease.fill(now: 1.1)
        #expect(lease.level == 50_000)
        lease.take(120_000)
        lease.fill(now: 1.18)
        #expect(lease.level == -20_000)
        // Nothing is left: it asks again, and where there is nothing now, later.
        lease.want()
        #expect(lease.isRequesting(now: 1.2))
        _ = lease.takeRequest()
        lease.grant(nil, now: 1.2, random: 0)
        #expect(!lease.isRequesting(now: 1.21) && lease.nextTime(now: 1.21) > 1.21)
        lease.want()
        #expect(lease.isRequesting(now: 2))
    }
}
