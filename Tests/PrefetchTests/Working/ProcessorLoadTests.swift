import Testing

@testable import Prefetch

@Suite("How much of the processors that more transfers would need is used")
struct ProcessorLoadTests {
    /// Loads of readings a quarter of a second apart, on a machine of four processors.
    private func loads(
        _ count: Int, own: Double, transfers: Double, machine: Double?, workers: Int
    ) -> [Double] {
        var load = ProcessorLoad()
        return (0..<count).map { number in
            let seconds = Double(number) / 4
            let ticks = machine.map { (busy: Int($0 * seconds * 400), all: Int(seconds * 400)) }
            let reading = ProcessorLoad.Reading(
                at: seconds, own: own * seconds, transfers: transfers * seconds, machine: ticks)
            return (load.take(reading, processors: 4, workers: workers) * 100).rounded() / 100
        }
    }

    @Test("This process', that of the transfers' thread, or the machine's, if the workers have a large part in it")
    func largest() {
        #expect(loads(3, own: 2, transfers: 0.25, machine: 0.5, workers: 1) == [0, 0.5, 0.5])
        #expect(loads(3, own: 1, transfers: 1, machine: 0.5, workers: 1) == [0, 1, 1])
        // The rest is the server's, on the same machine.
        #expect(loads(3, own: 2, transfers: 0.5, machine: 1, workers: 1) == [0, 1, 1])
        #expect(loads(3, own: 1, transfers: 0.5, machine: 1, workers: 2) == [0, 1, 1])
        // Another program has the machine.
        #expect(loads(3, own: 1, transfers: 0.5, machine: 1, workers: 1) == [0, 0.5, 0.5])
        #expect(loads(3, own: 2, transfers: 0.5, machine: nil, workers: 1) == [0, 0.5, 0.5])
    }

    @Test("It covers the last second")
    func span() {
        var load = ProcessorLoad()
        var own = 0.0
        let shares = (0..<16).map { number in
            if number > 0 { own += number <= 8 ? 0 : 0.25 }
            let reading = ProcessorLoad.Reading(at: Double(number) / 4, own: own, transfers: 0)
            return load.take(reading, processors: 1, workers: 1)
        }
        #expect(shares == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0.25, 0.5, 0.75, 1, 1, 1, 1])
    }
}
