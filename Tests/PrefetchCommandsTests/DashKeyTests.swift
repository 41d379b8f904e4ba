import Prefetch
import Testing
import WebImage

@testable import PrefetchCommands

@Suite("Keys of the dashboard", .timeLimit(.minutes(5)))
struct DashKeyTests {
    @Test(
        "What a terminal sends are these keys",
        arguments: [
            ("j", [.character("j")]), ("\u{1B}[A\u{1B}OB", [.up, .down]),
            ("\u{1B}[5~\u{1B}[Z\t", [.pageUp, .backTab, .tab]),
            ("\u{1B}", [.escape]), ("\u{1B}\u{1B}[C", [.escape, .right]), ("\r\n\u{7F}", [.enter, .enter, .backspace]),
            ("é漢", [.character("é"), .character("漢")]), ("\u{1B}[1;5Cx", [.character("x")]),
            ("\u{0C}", [.control("l")]),
            ("\u{1B}[?2026;2$y", []),
        ] as [(String, [TerminalKey])])
    func sequences(_ text: String, _ keys: [TerminalKey]) {
        var bytes = Array(text.utf8)
        #expect(TerminalKey.take(from: &bytes, isEnd: true) == keys)
        #expect(bytes.isEmpty)
        // The same when it comes byte by byte.
        var (part, found): ([UInt8], [TerminalKey]) = ([], [])
        for byte in text.utf8 {
            part.append(byte)
            found += TerminalKey.take(from: &part, isEnd: false)
        }
        #expect(found + TerminalKey.take(from: &part, isEnd: true) == keys)
    }

    @Test("What changes the queue asks first, and is not there with --readonly")
    func asking() {
        var state = DashFixture.state()
        #expect(state.press(.character("x")) == .none)
        #expect(state.question?.text == "cancel laion-art-7 with 386,480 URLs open? y/N" || state.question != nil)
        #expect(state.press(.enter) == .none && state.notice == "nothing was changed")
        _ = state.press(.character("x"))
        #expect(state.press(.character("y")) == .cancel("laion-art-7"))
        #expect(state.press(.character("r")) == .none && state.question == nil && state.notice != nil)
        state.snapshot?.status.state = .done
        _ = state.press(.character("r"))
        #expect(state.press(.character("y")) == .retry("laion-art-7"))
        state.isReadOnly = true
        state.snapshot?.status.state = .running
        for key in DashKey.all where key.changes {
            #expect(state.press(key.keys[0]) == .none && state.question == nil && state.notice == nil)
        }
        #expect(!DashFixture.frame(state, 120, 40).contains { $0.text.contains("cancel") })
    }

    @Test("p pauses what is chosen and lets it go on, P the queue, < and > change the turns of a running batch")
    func pausing() {
        var state = DashFixture.state()
        #expect(state.press(.character("p")) == .pause(.batch("laion-art-7")))
        state.snapshot?.status.isPaused = true
        #expect(state.press(.character("p")) == .resume(.batch("laion-art-7")))
        #expect(state.press(.character("P")) == .pause(.queue))
        state.snapshot?.status.isQueuePaused = true
        #expect(state.press(.character("P")) == .resume(.queue))
        _ = state.press(.character("2"))
        #expect(state.press(.character("p")) == .pause(.worker("node-a:4121")))
        state.snapshot?.workers["node-a:4121"]?.report.isPaused = true
        #expect(state.press(.character("p")) == .resume(.worker("node-a:4121")))
        _ = state.press(.character("G"))
        #expect(state.press(.character("p")) == .none && state.notice == "only a worker that is there can be paused")
        #expect(state.press(.character(">")) == .prioritise("laion-art-7", .high))
        #expect(state.press(.character("<")) == .prioritise("laion-art-7", .low))
        state.snapshot?.status.priority = .high
        #expect(state.press(.character(">")) == .none && state.notice == "laion-art-7 has priority high already")
        state.snapshot?.status.state = .done
        #expect(state.press(.character("<")) == .none && state.notice != nil)
        _ = state.press(.character("1"))
        #expect(state.press(.character("p")) == .none && state.notice == "only a running batch can be paused")
    }

    @Test("b takes the chosen URL off the list of failed ones")
    func unlisting() {
        var state = DashFixture.state()
        #expect(state.press(.character("b")) == .none && state.notice?.contains("choose a URL") == true)
        _ = state.press(.character("3"))
        _ = state.press(.enter)
        #expect(state.cause == "httpError 404")
        #expect(state.press(.character("b")) == .unlist(state.openFailures[0].url))
    }

    @Test("No key stands for two things")
    func unique() {
        let keys = DashKey.all.flatMap(\.keys)
        for (index, key) in keys.enumerated() { #expect(!keys[..<index].contains(key), "\(key)") }
    }

    @Test("Views, rows, filter, order, pace and freezing do as the help says")
    func moving() {
        var state = DashFixture.state()
        for (key, view) in [
            (TerminalKey.character("2"), DashView.workers), (.tab, .failures), (.backTab, .workers), (.left, .batch),
        ] {
            _ = state.press(key)
            #expect(state.view == view)
        }
        _ = state.press(.character("2"))
        #expect(state.cursor == 0 && state.rowCount == 4)
        for _ in 0..<9 { _ = state.press(.down) }
        #expect(state.cursor == 3)
        for key in [
            TerminalKey.character("/"), .character("n"), .character("o"), .character("d"), .character("e"),
            .character("-"), .character("b"), .enter,
        ] {
            _ = state.press(key)
        }
        #expect(state.workerRows.map(\.name) == ["node-b:977", "node-b:978"] && !state.isEditingFilter)
        _ = state.press(.escape)
        #expect(state.rowCount == 4)
        _ = state.press(.character("s"))
        _ = state.press(.character("s"))
        let finished = state.workerRows.map(\.counts.finished)
        #expect(finished == finished.sorted(by: >))
        _ = state.press(.character("S"))
        #expect(state.workerRows.map(\.counts.finished) == finished.sorted())
        for _ in 0..<20 { _ = state.press(.character("+")) }
        #expect(state.refresh == 60)
        for _ in 0..<20 { _ = state.press(.character("-")) }
        #expect(state.refresh == 0.2)
        #expect(state.press(.character(" ")) == .none && state.isFrozen)
        #expect(state.press(.character(" ")) == .reread && !state.isFrozen)
        #expect(state.press(.character("y")) == .copy(state.workerRows[state.cursor].name))
        _ = state.press(.character("]"))
        #expect(state.id == "app-icons-v12" && state.snapshot == nil)
        #expect(state.press(.character("q")) == .quit)
    }

    @Test(
        "Text for the clipboard is Base64",
        arguments: [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")])
    func base64(_ text: String, _ encoded: String) {
        #expect(DashTerminal.base64(Array(text.utf8)) == encoded)
    }

    @Test(
        "Columns of a text are never fewer than terminals give it",
        arguments: [
            ("abc", 3), ("漢字", 4), ("e\u{301}", 1), ("👩‍👧", 5), ("🇩🇪", 4), ("❤️", 2), ("ｱ", 1), ("Ａ", 2), ("\u{FFFD}", 1),
        ])
    func columns(_ text: String, _ columns: Int) {
        #expect(DisplayWidth.columns(text) == columns)
    }

    @Test(
        "Of a host that is too long both ends are seen, in no more columns than there are",
        arguments: [
            ("cdn.a.example", 20, "cdn.a.example"), ("this-is-a-very-long-host.example", 16, "this-is….example"),
            ("写真写真写真写真写真.example", 14, "写真写…example"), ("abcdefghij", 8, "abcdefg…"), ("abcdefghij", 9, "abcd…ghij"),
            ("aaaaaaaaaaaaaaae\u{301}wxyz", 9, "aaaa…wxyz"),
        ])
    func middle(_ text: String, _ limit: Int, _ cut: String) {
        let found = DisplayWidth.cutMiddle(text, to: limit, mark: "…")
        #expect(DisplayWidth.columns(found) <= limit, "\(found)")
        #expect(found == cut)
    }

    @Test("Skipped URLs are one line of the log for ten seconds, unless something else has happened")
    func log() {
        var state = DashState()
        state.id = "laion-art-7"
        var reading = DashFixture.reading(0)
        func skip(_ count: Int, at: Int) {
            reading.snapshot?.at = at
            reading.snapshot?.status.counts[.timeout] += count
            state.take(reading)
        }
        skip(0, at: 1_000)
        for second in 2...9 { skip(2, at: second * 1_000) }
        #expect(state.log.count == 2 && state.log.last?.text == "skipped 16: timeout 16")
        skip(1, at: 12_000)
        #expect(state.log.count == 3 && state.log.last?.text == "skipped 1: timeout 1")
        state.note(12_500, .warning, "node-b:978 is lost")
        skip(3, at: 13_000)
        #expect(state.log.suffix(2).map(\.text) == ["node-b:978 is lost", "skipped 3: timeout 3"])
        // Where there is room for one line, it is the one that is in no table.
        #expect(DashFixture.frame(state, 80, 24).contains { $0.text.hasSuffix("node-b:978 is lost") })
    }

    @Test("NO_COLOR, CLICOLOR_FORCE, FORCE_COLOR and TERM, in their order")
    func colour() {
        func isOn(_ environment: [String: String], _ isTerminal: Bool) -> Bool {
            Colours.areOn(1, environment: environment) { _ in isTerminal }
        }
        let xterm = ["TERM": "xterm"]
        #expect(isOn(xterm, true) && !isOn(xterm, false))
        #expect(!isOn(["TERM": "dumb"], true) && !isOn([:], true))
        #expect(!isOn(xterm.merging(["NO_COLOR": "1", "FORCE_COLOR": "1"]) { $1 }, true))
        #expect(isOn(xterm.merging(["NO_COLOR": ""]) { $1 }, true))
        #expect(isOn(["CLICOLOR_FORCE": "1"], false) && isOn(["FORCE_COLOR": "1"], false))
        #expect(!isOn(["CLICOLOR_FORCE": "0"], false))
    }
}
