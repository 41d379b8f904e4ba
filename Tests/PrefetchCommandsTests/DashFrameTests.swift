import Foundation
import Prefetch
import TestSupport
import Testing
import WebImage

@testable import PrefetchCommands

@Suite("Frames of the dashboard", .timeLimit(.minutes(5)))
struct DashFrameTests {
    private static let sizes = [(80, 24), (120, 40), (60, 20), (40, 10), (200, 50)]

    /// The frame as a file: `Tests/Golden/batch-80x24.txt`.
    @Test("A frozen batch looks as it is kept", arguments: DashView.allCases, sizes)
    func golden(view: DashView, size: (Int, Int)) throws {
        var state = DashFixture.state()
        state.view = view
        try compare(DashFixture.frame(state, size.0, size.1), "\(view.title)-\(size.0)x\(size.1)")
    }

    @Test("So does what is asked, the help, an open cause, and a terminal without Unicode")
    func others() throws {
        var state = DashFixture.state()
        #expect(state.press(.character("x")) == .none)
        try compare(DashFixture.frame(state, 80, 24), "cancel-80x24")
        #expect(state.press(.character("n")) == .none)
        _ = state.press(.character("?"))
        try compare(DashFixture.frame(state, 80, 24), "help-80x24")
        try compare(DashFixture.frame(state, 120, 40), "help-120x40")
        for _ in 0..<5 { _ = state.press(.down) }
        try compare(DashFixture.frame(state, 40, 10), "help-40x10")
        _ = state.press(.character("G"))
        #expect(DashFixture.frame(state, 40, 10).contains { $0.text.contains("quit; the batch continues") })
        _ = state.press(.escape)
        _ = state.press(.character("3"))
        _ = state.press(.enter)
        try compare(DashFixture.frame(state, 80, 24), "cause-80x24")
        state = DashFixture.state()
        try compare(DashFixture.frame(state, 80, 24, isUnicode: false), "ascii-80x24")
        #expect(DashFixture.frame(state, 80, 24, isUnicode: false).allSatisfy { $0.text.utf8.allSatisfy { $0 < 0x80 } })
        try compare(DashFixture.frame(state, 39, 24), "small-39x24")
        state.take(DashFixture.paused(41))
        try compare(DashFixture.frame(state, 80, 24), "paused-80x24")
        state.view = .workers
        try compare(DashFixture.frame(state, 120, 40), "paused-120x40")
    }

    @Test("Without Unicode every view and the help are ASCII, and the help needs no escape for it")
    func ascii() {
        var state = DashFixture.state()
        for view in DashView.allCases {
            for isHelp in [false, true] {
                (state.view, state.isHelpShown) = (view, isHelp)
                for (columns, rows) in [(80, 24), (120, 40), (60, 15), (200, 60), (40, 10)] {
                    let lines = DashFixture.frame(state, columns, rows, isUnicode: false).map(\.text)
                    #expect(lines.allSatisfy { $0.utf8.allSatisfy { $0 < 0x80 } }, "\(lines)")
                    // A host's name may need that.
                    #expect(!isHelp || !lines.contains { $0.contains("\\u{") }, "\(lines)")
                }
            }
        }
    }

    @Test("Sentences of the log and of the help end between two words, in the help nothing is cut at 60 columns")
    func sentences() throws {
        var state = DashFixture.state()
        state.view = .log
        let words = Set(state.logLines.flatMap { $0.text.split(separator: " ") })
        var cut = 0
        for columns in 60...120 {
            for line in DashFixture.frame(state, columns, 60).map(\.text) where line.hasSuffix("…") {
                let last = try #require(line.dropLast().split(separator: " ").last)
                #expect(words.contains(last), "\(line)")
                cut += 1
            }
        }
        #expect(cut > 0)
        _ = state.press(.character("?"))
        for isUnicode in [true, false] {
            let lines = DashFixture.frame(state, 60, 40, isUnicode: isUnicode).map(\.text)
            #expect(!lines.contains { $0.hasSuffix("…") || $0.hasSuffix("..") }, "\(lines)")
        }
        #expect(DisplayWidth.cutWords("one two three", to: 12, mark: "..") == "one two ..")
        #expect(DisplayWidth.cutWords("one two three", to: 13, mark: "..") == "one two three")
        #expect(DisplayWidth.cutWords("one two three", to: 9, mark: "..") == "one two..")
        #expect(DisplayWidth.cutWords("http://host/path and more", to: 12, mark: "..") == "http://hos..")
    }

    private func compare(_ lines: [StyledLine], _ name: String) throws {
        let text =
            lines.map { $0.text.trimmingCharacters(in: .whitespaces).isEmpty ? "" : $0.text }
            .joined(separator: "\n") + "\n"
        try Golden.expect(text, is: name)
    }

    @Test("No line is wider than the screen, and there are as many as it has rows, at every size")
    func widths() {
        var state = DashFixture.state()
        for view in DashView.allCases {
            state.view = view
            for cause in [nil, "timeout"] as [String?] {
                state.cause = view == .failures ? cause : nil
                for columns in [1, 20, 39, 40, 41, 59, 60, 71, 72, 79, 80, 109, 110, 133, 250] {
                    for rows in [1, 9, 10, 11, 19, 24, 33, 34, 60] {
                        for isUnicode in [true, false] {
                            let lines = DashFixture.frame(state, columns, rows, isUnicode: isUnicode)
                            #expect(lines.allSatisfy { $0.width <= columns }, "\(view) \(columns)x\(rows)")
                            #expect(lines.allSatisfy { DisplayWidth.columns($0.text) == $0.width })
                            #expect(lines.count == rows || columns < 40 || rows < 10)
                            #expect(!lines.contains { $0.text.unicodeScalars.contains { TerminalText.isUnsafe($0) } })
                        }
                    }
                }
            }
        }
    }

    @Test(
        "Causes, workers and hosts add up to the batch in every frame, also when a worker goes and when it is cancelled"
    )
    func sums() throws {
        var state = DashState()
        state.id = "laion-art-7"
        for second in 0...40 {
            var reading = DashFixture.reading(second)
            if second == 40 {
                reading.snapshot?.status.state = .cancelled
                let open = 1_000_000 - (reading.snapshot?.status.counts.finished ?? 0)
                reading.snapshot?.status.counts[.cancelled] += open
            }
            state.take(reading)
            let counts = try #require(state.snapshot?.status.counts)
            #expect(state.causes.reduce(0) { $0 + $1.count } == counts.skipped)
            #expect(state.workerRows.reduce(0) { $0 + $1.counts.finished } == counts.finished)
            #expect(state.workerRows.reduce(0) { $0 + $1.counts.skipped } == counts.skipped)
            #expect(state.hostRows.reduce(0) { $0 + $1.host.finished } == counts.finished)
            #expect(state.hostRows.reduce(0) { $0 + $1.host.skipped } == counts.skipped)
            for height in 1...6 {
                #expect(
                    DashFrame.merged(state.hostRows, to: height).reduce(0) { $0 + $1.host.finished } == counts.finished)
            }
        }
        #expect(state.workerRows.contains { $0.name == "node-b:978" && $0.state == "LOST" })
        #expect(state.log.contains { $0.text == "node-b:978 is lost, 3 jobs went back to the queue" })
    }

    @Test("Hosts in back-off are told, counted down, shown although nothing of them has ended, and told again")
    func troubledHosts() throws {
        var state = DashFixture.state()
        var reading = DashFixture.reading(45)
        let note = "busy \(DashFixture.start + 955_000) 0 1 503 HTTP 503"
        let at = try #require(reading.queue?.at)
        let new = try #require(HostProblem(host: "new.example", note: note, now: at))
        reading.queue?.hosts.append(new)
        for name in try #require(reading.snapshot).workers.keys { reading.snapshot?.workers[name]?.report.inFlight = 0 }
        state.take(reading)
        #expect(state.stallReason == "2 hosts in back-off, the next is asked in 10.0 s")
        #expect(
            state.log.last?.text
                == "host new.example asked for back-off (HTTP 503); its URLs are waiting, next request in 10.0 s")
        state.view = .hosts
        let rows = state.hostRows.filter { $0.trouble != nil }
        #expect(rows.map(\.name) == ["img.b.example", "old.e.example", "new.example"])
        #expect(rows.map(\.host.finished).last == 0)
        // Other batches and hosts are read less often than this one: the seconds go on.
        reading.queue = nil
        reading.snapshot?.at += 4_000
        state.take(reading)
        func shown() -> [String] {
            DashFixture.frame(state, 80, 24).map(\.text).compactMap { line in
                line.firstMatch(of: /(silent|busy)[ ,].*$/).map { String($0.0) }
            }
        }
        #expect(shown() == ["silent 32s", "busy 6s"])
        reading.snapshot?.at += 7_000
        state.take(reading)
        #expect(shown() == ["silent 25s", "busy, retrying"])
        reading.snapshot?.at += 30_000
        state.take(reading)
        #expect(shown() == ["silent, retrying", "busy, retrying"])
        var queue = QueueSnapshot()
        queue.at = try #require(reading.snapshot?.at)
        reading.queue = queue
        state.take(reading)
        #expect(
            state.log.suffix(2).map(\.text) == [
                "host new.example is asked as usual again", "host old.e.example is asked as usual again",
            ])
        #expect(state.stallReason == nil)
        #expect(shown().isEmpty && state.hostRows.allSatisfy { $0.trouble == nil && $0.host.finished > 0 })
    }

    @Test("A cache is told once however many workers have it, by the newest of them, in the words that have room")
    func cache() {
        func report(_ id: String, beat: Int, images: Int, limit: Int? = nil) -> WorkerReport {
            var report = WorkerReport()
            (report.cache, report.beat, report.cacheLimit) = (id, beat, limit)
            (report.cacheImages, report.cacheBytes) = (images, images * 1_000_000)
            return report
        }
        let two = [report("a", beat: 5, images: 2_000), report("a", beat: 4, images: 1_990, limit: 8_000_000_000)]
        for reports in [two, two.reversed()] {
            let cache = CacheLoad(reports)
            #expect(cache.text(columns: 80) == "2.0 GB of 8.0 GB (25%), 2,000 images")
            #expect(cache.text(columns: 36) == "2.0 GB of 8.0 GB (25%), 2,000 images")
            #expect(cache.text(columns: 35) == "2.0 GB of 8.0 GB (25%)")
            #expect(cache.text(columns: 21) == "2.0 GB of 8.0 GB")
            #expect(cache.text(columns: 15) == "2.0 GB" && cache.text(columns: 5) == nil)
        }
        #expect(
            CacheLoad(two + [report("b", beat: 1, images: 1, limit: 5)]).text(columns: 80)
                == "2 caches, 2.0 GB, 2,001 images")
        var (nameless, empty) = (report("", beat: 1, images: 3), WorkerReport())
        empty.cache = "a"
        nameless.cacheBytes = 9
        #expect(CacheLoad([empty, nameless]).text(columns: 80) == nil)
    }

    @Test("A minute without an end is said, with its reason")
    func stalled() {
        var state = DashFixture.state()
        for second in 41...110 {
            var reading = DashFixture.reading(40)
            reading.snapshot?.at += (second - 40) * 1000
            reading.snapshot?.status.at += (second - 40) * 1000
            state.take(reading)
        }
        #expect(state.isStalled)
        let text = DashFixture.frame(state, 80, 24).map(\.text).joined(separator: "\n")
        #expect(
            text.contains("STALLED") && text.contains("ETA –") && text.contains("! 210 wait for their next try"),
            "\(text)")
        state.snapshot?.status.isPaused = true
        #expect(!state.isStalled && state.stallReason == "this batch is paused; p resumes it")
        state.snapshot?.status.isQueuePaused = true
        #expect(state.stallReason == "this batch is paused, and the whole queue too: p and P")
        state.isReadOnly = true
        state.snapshot?.status.isPaused = false
        #expect(state.stallReason == "the whole queue is paused")
        state.snapshot?.status.isQueuePaused = false
        for name in ["node-a:4121", "node-a:4122", "node-b:977"] {
            state.snapshot?.workers[name]?.report.isPaused = true
        }
        #expect(state.stallReason == "every worker is paused")
        state.lose("connection refused")
        #expect(state.stallReason == "Redis is away, trying again: connection refused")
    }
}
