import TestSupport
import Testing
import Threading
import WebImage

@testable import Prefetch

@Suite("Slots for URLs", .timeLimit(.minutes(5)))
struct URLSlotsTests {
    /// Who asks, one after the other, and who has got some.
    private func ask(_ slots: URLSlots, _ counts: [Int], permit: DownloadPermit? = nil) async -> Locked<[Int]> {
        let granted = Locked<[Int]>([])
        for (number, count) in counts.enumerated() {
            let before = slots.waiting
            Task {
                if await slots.acquire(count, permit: permit) { granted.withLock { $0.append(number) } }
            }
            _ = await becomes { granted.withLock { $0.contains(number) } || slots.waiting > before }
        }
        return granted
    }

    @Test("A higher limit lets in who waits; with a lower one nobody new comes until enough have gone")
    func limit() async throws {
        let slots = URLSlots(limit: 4)
        #expect(await slots.acquire(4))
        let granted = await ask(slots, [1, 1])
        #expect(granted.withLock { $0 } == [])
        slots.limit = 5
        #expect(await becomes { granted.withLock { $0 } == [0] })
        slots.limit = 2
        slots.release(3)
        #expect(slots.used == 2 && granted.withLock { $0 } == [0])
        slots.release(1)
        #expect(await becomes { granted.withLock { $0 } == [0, 1] })
        #expect(slots.used == 2)
    }

    @Test("Who asks for more than there are waits until nobody has any, and keeps all others out")
    func moreThanThereAre() async throws {
        let slots = URLSlots(limit: 4)
        #expect(await slots.acquire(1))
        let granted = await ask(slots, [200, 1])
        slots.limit = 100
        #expect(granted.withLock { $0 } == [])
        slots.release(1)
        #expect(await becomes { granted.withLock { $0 } == [0] })
        #expect(slots.used >= slots.limit)
        slots.release(200)
        #expect(await becomes { granted.withLock { $0 } == [0, 1] })
        #expect(slots.used == 1)
    }

    @Test("Who has lost the permit is sent away, and those behind have the turn")
    func permits() async throws {
        let slots = URLSlots(limit: 2)
        #expect(await slots.acquire(1))
        let permit = DownloadPermit()
        let answer = Locked<Bool?>(nil)
        Task {
            let result = await slots.acquire(2, permit: permit)
            answer.withLock { $0 = result }
        }
        #expect(await becomes { slots.waiting == 1 })
        let granted = Locked(false)
        Task { if await slots.acquire(1) { granted.withLock { $0 = true } } }
        #expect(await becomes { slots.waiting == 2 })
        permit.revoke()
        slots.dismissRevoked()
        #expect(await becomes { answer.withLock { $0 } == false && granted.withLock { $0 } })
        #expect(await slots.acquire(1, permit: permit) == false)
        #expect(slots.used == 2)
    }
}
