import Prefetch
import Testing
import WebImage

@testable import PrefetchCommands

@Suite(.timeLimit(.minutes(1)))
struct InlineProgressTests {
    @Test(arguments: [("abc", 3, "abc"), ("abcd", 3, "..."), ("abcdef", 5, "ab..."), ("漢字", 4, "漢字"), ("漢字", 3, "...")])
    func textIsCutToItsColumns(text: String, columns: Int, cut: String) {
        #expect(TerminalText.cut(text, to: columns, isUnicode: false) == cut)
    }

    @Test func aCutTextHasAnEllipsisWhereThereIsUnicode() {
        #expect(TerminalText.cut("abcdef", to: 5, isUnicode: true) == "abc…")
        #expect(TerminalText.cut("漢字漢字", to: 5, isUnicode: true) == "漢…")
        #expect(TerminalText.cut("abcdef", to: 1, isUnicode: true) == ".")
        #expect(TerminalText.cut("abcdef", to: 0, isUnicode: true) == "")
    }

    @Test func aSteadyRateIsMeasuredOverTheLastSeconds() {
        var rate = ProgressRate()
        let start = ContinuousClock.now
        func counts(_ finished: Int) -> PrefetchCounts {
            var counts = PrefetchCounts()
            counts[.hit] = finished
            counts.bytes = finished * 1000
            return counts
        }
        rate.add(counts(500), at: start)
        #expect(rate.urls == 0 && rate.seconds(for: 10) == nil)
        for second in 1...30 { rate.add(counts(500 + second * 100), at: start + .seconds(second)) }
        #expect(rate.urls == 100 && rate.bytes == 100_000 && rate.seconds(for: 250) == 2.5)
        // The last ones wait for something.
        var waiting = rate
        for second in 31...33 { waiting.add(counts(3500), at: start + .seconds(second)) }
        #expect(waiting.seconds(for: 3) != nil && waiting.urls > 0)
        waiting.add(counts(3500), at: start + .seconds(33.5))
        #expect(waiting.seconds(for: 3) == nil && waiting.seconds(for: 1000) != nil && waiting.urls > 0)
        // A Redis that lost its last second does not run backwards here.
        rate.add(counts(0), at: start + .seconds(31))
        #expect(rate.urls == 0)
    }

    @Test func loadsOfWorkersAddUp() {
        let load = WorkerLoad([
            [
                "id": "a:1", "in_flight": "3", "checking": "2", "parked": "1", "waiting_for_host": "9", "retrying": "4",
                "trouble": "",
            ],
            ["id": "b:2", "in_flight": "2", "trouble": "disk full"],
        ])
        #expect((load.workers, load.inFlight, load.parked, load.waitingForHost, load.retrying) == (2, 5, 1, 9, 4))
        #expect(load.isHeldByHosts && load.trouble == "b:2 paused: disk full")
        // A sign of life is up to a second old; the counts beside it are not.
        #expect(load.beside(left: 20) == load)
        let beside = [18, 14, 6, 3, 0, -1].map { load.beside(left: $0) }
        #expect(
            beside.map { [$0.inFlight, $0.parked, $0.checking, $0.waitingForHost, $0.retrying] }
                == [
                    [5, 1, 2, 9, 2], [5, 1, 2, 7, 0], [5, 1, 1, 0, 0], [3, 1, 0, 0, 0], [0, 0, 0, 0, 0],
                    [0, 0, 0, 0, 0],
                ])
        #expect(!load.beside(left: 6).isHeldByHosts)
        // What is being checked keeps the batch going, however many wait.
        var busy = load
        busy.checking = 4
        #expect(!busy.isHeldByHosts)
    }
}
