import Prefetch
import Testing
import WebImage

@testable import PrefetchCommands

@Suite(.timeLimit(.minutes(5)))
struct PrintingTests {
    @Test(arguments: [
        (0, "0"), (999, "999"), (1000, "1,000"), (4812, "4,812"), (1_234_567, "1,234,567"), (-1000, "-1,000"),
    ])
    func countsAreGrouped(number: Int, text: String) {
        #expect(Wording.count(number) == text)
    }

    @Test(arguments: [
        (0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (9_940, "9.9 kB"), (105_000_000, "105 MB"),
        (53_400_000_000, "53 GB"),
    ])
    func sizesHaveAUnit(number: Int, text: String) {
        #expect(Wording.bytes(number) == text)
    }

    @Test(arguments: [(0.04, "0.0 s"), (9.84, "9.8 s"), (72, "1m12s"), (7500, "2h05m")])
    func timesAreShort(seconds: Double, text: String) {
        #expect(Wording.seconds(seconds) == text)
    }

    @Test func aShareIsWholeOnlyAtTheEnd() {
        #expect(Wording.share(0, of: 3) == "0.0%")
        #expect(Wording.share(2, of: 3) == "66.6%")
        #expect(Wording.share(999_999, of: 1_000_000) == "99.9%")
        #expect(Wording.share(3, of: 3) == "100.0%")
        #expect(Wording.share(0, of: 0) == "100.0%")
    }

    @Test(arguments: [
        ([300, 9, 6, 3, 1, 1], 320, ["93.8%", "2.8%", "1.9%", "0.9%", "0.3%", "0.3%"]),
        ([1, 1, 1], 3, ["33.4%", "33.3%", "33.3%"]), ([9_999, 1], 10_000, ["99.9%", "0.1%"]), ([1], 1, ["100.0%"]),
        // Not all of it is there.
        ([2, 0], 3, ["66.7%", "0.0%"]), ([9_999], 10_000, ["99.9%"]), ([1], 3_000, ["<0.1%"]), ([0], 0, ["100.0%"]),
        // As of a batch whose formats Redis has lost.
        ([], 3, []),
    ])
    func sharesOfOneWholeAddUp(parts: [Int], whole: Int, texts: [String]) {
        #expect(Share.texts(parts.map { Share(part: $0, whole: whole) }) == texts)
    }

    @Test(arguments: [
        (0, "0.00 ms"), (0.000_84, "0.84 ms"), (0.009_994, "9.99 ms"), (0.009_996, "10.0 ms"), (0.118, "118 ms"),
        (0.999_4, "999 ms"), (0.999_6, "1.00 s"), (1.844, "1.84 s"), (12.34, "12.3 s"), (59.96, "1m00s"),
        (131.072, "2m11s"),
    ])
    func latenciesHaveThreeDigits(seconds: Double, text: String) {
        #expect(Wording.latency(seconds) == text)
    }

    @Test func aLineKeepsItsStylesAndNothingElseOfATerminal() {
        let painted =
            Ink.bad.painted("bad", isColoured: true) + "\t" + Ink.plain.selected.painted("x", isColoured: false)
        #expect(TerminalText.line(painted) == painted)
        #expect(TerminalText.line("a\u{1B}[2J\u{7}\r\nb\u{7F}") == "a\\x1b[2J\\x07\\x0d\nb\\x7f")
        #expect(TerminalText.line("\u{1B}[8mx\u{1B}[0m\u{1B}[m\u{1B}[31") == "\\x1b[8mx\u{1B}[0m\\x1b[m\\x1b[31")
        // What a URL may have stays: somebody may read it on.
        #expect(TerminalText.line("http://h/ä\u{202E}") == "http://h/ä\u{202E}")
        // A terminal gets it as it is read, with its styles.
        #expect(TerminalText.shown(painted) == painted)
        #expect(TerminalText.shown("http://h/ä\u{202E}\u{9B}31m\n") == "http://h/ä\\u{202e}\\x9b31m\n")
        #expect(TerminalText.escaped("a\u{61C}b\u{202E}") == "a\\u{61c}b\\u{202e}")
    }

    @Test func numbersThatAreTooLargeAreShown() {
        #expect(Wording.seconds(.infinity).hasSuffix("m") && Wording.seconds(1e300).hasSuffix("m"))
        #expect(Wording.decimal(.nan, digits: 1) == "0.0")
        #expect(JSONText.number(1e300).text.count > 10)
        #expect(Int(clamped: -1e300) < 0 && Int(clamped: 2.9) == 2)
    }

    @Test func aTableHasNoFormulaAndNothingThatReordersIt() {
        func line(_ url: String, _ caption: String, _ form: BatchTable.Form = .commas) -> String {
            var result = BatchResults.Line(line: 7, url: url, outcome: .hit)
            result.columns = ["caption": .text(caption)]
            return BatchTable(form: form, columns: ["caption"]).line(ExportedLine(result))
        }
        for first in ["=", "+", "-", "@", "\t", "\r"] {
            #expect(line("http://h/", first + "1+1").hasSuffix(",\"'\(first)1+1\"\r\n"))
        }
        #expect(
            line("http://h/a=b", "a=b", .tabs) == "7\thttp://h/a=b\thit" + String(repeating: "\t", count: 16) + "a=b\n")
        #expect(line("=1+1", "", .tabs).hasPrefix("7\t'=1+1\t"))
        let bidi = line("http://h/\u{202E}gpj", "x\u{61C}\u{1B}[2J\ny", .tabs)
        #expect(bidi.hasPrefix("7\thttp://h/%E2%80%AEgpj\thit") && bidi.hasSuffix("\t\"x\\u{61c}\\x1b[2J\ny\"\n"))
    }

    @Test func jsonKeepsItsOrderAndEscapesWhatCanMoveATerminal() {
        let value = JSONText.object([
            ("v", .int(1)), ("a\"\\", .string("x\n\u{1B}[2J\u{202E}\u{85}é")), ("n", .null), ("b", .bool(true)),
            ("l", .array([.number(1.5), .number(2), .number(0.1234), .int(-3)])),
            (
                "d",
                .array([
                    .number(-0.5), .number(0.000_021, digits: 6), .number(0.000_4), .number(12.000_000_6, digits: 6),
                ])
            ),
        ])
        #expect(
            value.text
                == #"{"v":1,"a\"\\":"x\n\u001b[2J\u202e\u0085é","n":null,"b":true,"l":[1.5,2,0.123,-3],"d":[-0.5,0.000021,0,12.000001]}"#
        )
    }

    @Test func terminalTextIsHarmless() {
        #expect(TerminalText.escaped("plain é 漢") == "plain é 漢")
        #expect(TerminalText.escaped("a\u{1B}[31mb\u{9B}c\u{202E}d\r\n") == "a\\x1b[31mb\\x9bc\\u{202e}d\\x0d\\x0a")
    }

    @Test(arguments: [
        ("http://user:secret@host/a", "http://user:***@host/a"), ("http://user@host/a", "http://user@host/a"),
        ("http://host/a:b@c", "http://host/a:b@c"), ("no url", "no url"),
        ("http://u:p@q@host/", "http://u:***@host/"),
    ])
    func passwordsOfURLsAreNotPrinted(url: String, text: String) {
        #expect(TerminalText.url(url) == text)
    }

    @Test(arguments: [
        (["--bearer", "x", "--user=a:b"], ["--bearer", "--user"]), (["--bearer", "@f", "--user", "@f"], []),
        (["-H", "X-Api-Key: 1", "--header", "Cookie: a"], ["--header"]), (["-H", "Accept: */*", "-H", "@f"], []),
        (["--header-rule", "h=Private-Token: 1"], ["--header-rule"]), (["--header-rule", "h=Referer: x"], []),
        (["--proxy", "http://u:p@h:1"], ["--proxy"]), (["--proxy", "http://h:1"], []),
        (["--redis", "redis://:pw@h/0"], ["--redis"]), (["--redis", "redis://h/0?password=x"], ["--redis"]),
        (["--redis", "redis://u@h/0"], []), (["run", "urls.txt"], []), (["--bearer"], ["--bearer"]),
    ])
    func doctorSeesSecretsOnCommandLines(words: [String], options: [String]) {
        #expect(CommandLineDiagnostics.secretOptions(words[...]) == options)
        let finding = CommandLineDiagnostics.finding(["/usr/bin/prefetch-worker"] + words, pid: 7)
        #expect((finding != nil) == !options.isEmpty)
        #expect(CommandLineDiagnostics.finding(["/usr/bin/curl"] + words, pid: 7) == nil)
        for text in [finding?.text, finding?.remedy] { #expect(text?.contains("pw") != true) }
    }

    @Test(arguments: [("./cache", "./cache"), ("a b", "'a b'"), ("it's", #"'it'\''s'"#), ("", "''"), ("$x", "'$x'")])
    func wordsAreQuotedForAShell(word: String, text: String) {
        #expect(Shell.quoted(word) == text)
    }

    @Test func theLastLineOfAWorkerNamesEveryOutcome() {
        var counts = PrefetchCounts()
        counts[.downloaded] = 4700
        counts[.hit] = 100
        counts[.httpError] = 12
        let line = WorkerProcess.lastLine(counts)
        #expect(line.hasSuffix(" finished 4,812 skipped 12 (downloaded 4,700, hit 100, httpError 12)"))
        #expect(line.hasPrefix("prefetch-worker "))
    }

    @Test func noEndIsPromisedWhileNoWorkerWorks() {
        var counts = PrefetchCounts()
        counts[.downloaded] = 60
        let status = BatchStatus(
            id: "b", state: .running, total: 100, counts: counts, created: 1, ended: 0, at: 3_001)
        var rate = ProgressRate()
        rate.add(ProgressMark(at: 1, finished: 0, skipped: 0, bytes: 0))
        rate.add(ProgressMark(at: 3_001, finished: 60, skipped: 0, bytes: 0))
        let full = WorkerReport(fields: ["trouble": "disk full"])
        let paused = WorkerReport(fields: ["paused": "1"])
        let works = WorkerReport(fields: ["in_flight": "2"])
        func eta(_ reports: WorkerReport...) -> Double? {
            let named = reports.enumerated().map { ("w:\($0)", WorkerRecord(id: "w:\($0)", $1, leaseLeft: 9_000)) }
            return rate.eta(status, WorkerLoad(Dictionary(uniqueKeysWithValues: named)))
        }
        #expect(eta(works) == 2 && eta(full, works) == 2)
        #expect(eta(full) == nil && eta(full, paused) == nil && eta() == nil)
    }

    @Test func causesComeBiggestFirst() {
        var counts = PrefetchCounts()
        counts[.timeout] = 3
        counts[.badImage] = 1200
        counts[.httpError] = 3
        #expect(BatchText.causes(counts) == "badImage 1,200, httpError 3, timeout 3")
    }
}
