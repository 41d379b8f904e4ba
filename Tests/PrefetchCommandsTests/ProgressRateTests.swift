import PrefetchModel
import Testing

@testable import Prefetch
@testable import PrefetchCommands
@testable import Queue

@Suite("Rates and ETA")
struct ProgressRateTests {
    private func status(
        _ at: Int, _ finished: Int, skipped: Int = 0, last: Int? = nil, total: Int = 10_000
    ) -> BatchStatus {
        var counts = PrefetchCounts()
        (counts[.downloaded], counts[.timeout], counts.bytes) = (finished - skipped, skipped, finished * 1000)
        var status = BatchStatus(id: "b", state: .running, total: total, counts: counts, created: 1, ended: 0, at: at)
        status.last = last ?? at
        return status
    }

    private func mark(_ at: Int, _ finished: Int, skipped: Int = 0) -> ProgressMark {
        ProgressMark(at: at, finished: finished, skipped: skipped, bytes: finished * 1000)
    }

    private let load: WorkerLoad = {
        var load = WorkerLoad()
        load.workers = 2
        return load
    }()

    @Test("A steady rate is measured over the last seconds, and images apart from URLs")
    func steady() {
        var rate = ProgressRate()
        rate.add(status(1_000, 500))
        #expect(!rate.isKnown && rate.urls == 0 && rate.seconds(for: 10) == nil)
        for second in 1...30 { rate.add(status(1_000 + second * 1000, 500 + second * 100, skipped: second * 25)) }
        #expect(rate.isKnown && rate.urls == 100 && rate.images == 75 && rate.bytes == 100_000)
        #expect(rate.seconds(for: 250) == 2.5)
        // The last ones wait for something.
        for second in 31...33 { rate.add(status(1_000 + second * 1000, 3500, last: 31_000)) }
        #expect(rate.seconds(for: 3) != nil && rate.urls > 0)
        rate.add(status(34_500, 3500, last: 31_000))
        #expect(rate.seconds(for: 3) == nil && rate.seconds(for: 1000) != nil && rate.urls > 0)
        rate.add(status(39_000, 3500, last: 31_000))
        #expect(rate.urls == 0 && rate.images == 0 && rate.bytes == 0 && rate.seconds(for: 1000) == nil)
        // A Redis that lost its last second does not run backwards here, and time that goes back is no reading.
        rate.add(status(40_000, 10))
        #expect(rate.urls == 0)
        rate.add(status(20, 10_000))
        #expect(rate.urls == 0)
    }

    @Test("One reading is enough where the batch says where it was; an old mark says nothing about now")
    func marks() {
        var status = status(100_000, 5_000, skipped: 1_000)
        status.marks = [mark(80_000, 1_000), mark(90_000, 4_000, skipped: 500)]
        var rate = ProgressRate()
        rate.add(status)
        // The mark of 10 s ago, not that of 20.
        #expect(rate.urls == 100 && rate.images == 50 && rate.seconds(for: 5_000) == 50)
        #expect(rate.eta(status, load) == 50)
        status.last = 91_000
        var idle = ProgressRate()
        idle.add(status)
        #expect(idle.urls == 0 && idle.eta(status, load) == nil)
        // Older than it seems, while there is no newer reading.
        var old = ProgressRate()
        status.last = 100_000
        old.add(status)
        old.add(status, age: .seconds(2))
        #expect(old.urls > 80 && old.urls < 100)
        old.add(status, age: .seconds(8))
        #expect(old.urls == 0)
        // A break: both marks are the same, and a reading at the time of the last mark is that mark.
        status.marks = [mark(100_000, 5_000), mark(100_000, 5_000)]
        var again = ProgressRate()
        again.add(status)
        #expect(!again.isKnown && again.urls == 0)
    }

    @Test("Nothing is promised for a batch that does not run, is paused, or has no worker")
    func eta() {
        var status = status(10_000, 1_000)
        status.marks = [mark(1, 0), mark(2_000, 200)]
        var rate = ProgressRate()
        rate.add(status)
        #expect(rate.eta(status, load) == 90)
        var none = load
        none.workers = 0
        #expect(rate.eta(status, none) == nil)
        var paused = load
        paused.paused = 2
        #expect(rate.eta(status, paused) == nil)
        var last = load
        last.last = LastURLs(count: 2, [], at: 0)
        #expect(rate.eta(status, last) == nil)
        for change in [{ $0.isPaused = true }, { $0.isQueuePaused = true }, { $0.state = .done }]
            as [(inout BatchStatus) -> Void]
        {
            var changed = status
            change(&changed)
            #expect(rate.eta(changed, load) == nil)
        }
    }

    @Test("The line of status, the live lines and the plain ones, the events and the dashboard tell the same")
    func views() throws {
        var status = status(100_000, 5_000)
        status.marks = [mark(80_000, 1_000), mark(90_000, 4_000)]
        var rate = ProgressRate()
        rate.add(status)
        #expect(BatchText.line(status, load).hasSuffix("  100 URLs/s  ETA 50.0 s"))
        let frame = InlineFrame.lines(status, load, rate, width: 200, isUnicode: false)
        #expect(frame.contains { $0.contains("100 URLs/s") && $0.contains("ETA 50.0 s") }, "\(frame)")
        var lines = ProgressLines()
        _ = lines.isDue(status)
        let line = lines.line(for: status, load)
        #expect(line.contains(" rate=100/s MBps=0.1 ") && line.contains(" eta=50s"), "\(line)")
        var events = RateEvents()
        _ = events.isDue(status)
        #expect(events.event(status, load).json.text.contains(#""rate":100,"eta_s":50,"MBps":0.1"#))
        var history = DashHistory()
        history.add(status)
        #expect(history.rate.eta(status, load) == 50)
        // A batch that has stopped tells neither.
        status.last = 20_000
        #expect(!BatchText.line(status, load).contains("URLs/s"))
    }

    @Test("The graphs of the dashboard count images by second")
    func graph() {
        var history = DashHistory()
        for half in 0...60 { history.add(mark(half * 500, half * 50, skipped: half * 10)) }
        #expect(history.images.count == 30 && history.images.allSatisfy { $0 == 80 } && history.peak == 80)
        #expect(history.rate.urls == 100 && history.rate.images == 80)
    }
}
