import Testing
import Threading

@Suite("A waiter", .timeLimit(.minutes(5)))
struct WaiterTests {
    @Test("The first answer counts, before the wait, in it, and against a cancellation")
    func first() async {
        let early = Waiter<Int>()
        #expect(early.answer(1) && !early.answer(2) && early.isAnswered)
        #expect(await early.wait(ifCancelled: 3) == 1)
        let late = Waiter<Int>()
        let task = Task { await late.wait(ifCancelled: 3) }
        #expect(!late.isAnswered && late.answer(1))
        task.cancel()
        #expect(await task.value == 1)
        let cancelled = Waiter<Int>()
        let other = Task { await cancelled.wait(ifCancelled: 3) }
        other.cancel()
        #expect(await other.value == 3 && !cancelled.answer(1))
    }

    @Test("Every one of many gets exactly one answer, whoever is faster")
    func race() async {
        for _ in 0..<200 {
            let waiters = (0..<20).map { _ in Waiter<Bool>() }
            let tasks = waiters.map { waiter in Task { await waiter.wait(ifCancelled: false) } }
            async let answered = Task { waiters.map { $0.answer(true) } }.value
            async let ended: Void = Task { for task in tasks { task.cancel() } }.value
            let took = await answered
            await ended
            for (task, isAnswered) in zip(tasks, took) { #expect(await task.value == isAnswered) }
        }
    }
}
