import Prefetch
import Testing
import WebImage

@testable import PrefetchCommands

@Suite("The page of a report", .timeLimit(.minutes(5)))
struct ReportTests {
    /// What somebody would write who wants the page to do something.
    private let hostile = "https://a.example/\"><script>alert(1)</script><img src=x onerror='x'>&amp;\u{202E}\u{1B}[2J"

    private func status(_ set: (inout PrefetchCounts) -> Void) -> BatchStatus {
        var counts = PrefetchCounts()
        set(&counts)
        return BatchStatus(
            id: "urls-7f3a", state: .done, total: counts.finished, counts: counts, created: 1_800_000_000_000,
            ended: 1_800_000_060_000, at: 1_800_000_070_000)
    }

    private func report() -> BatchPage {
        let status = status { counts in
            counts[.downloaded] = 90
            counts[.hit] = 5
            counts[.httpError] = 9
            counts[.timeout] = 3
            counts.bytes = 4_500_000
        }
        var snapshot = BatchSnapshot(at: status.at, status: status, httpStatuses: [404: 6, 503: 2])
        snapshot.hosts = [
            "a.example": .init(finished: 70, skipped: 12, bytes: 4_000_000),
            "b\"<i>": .init(finished: 32, skipped: 0, bytes: 500_000),
        ]
        snapshot.counts = ["host:1": status.counts]
        var page = BatchPage(snapshot: snapshot)
        page.failures = [
            FailureDetail(
                line: 7, url: hostile, outcome: .httpError, httpStatus: 404, tries: 1, detail: "<b>no</b>"),
            FailureDetail(
                line: 9, url: "https://u:secret@a.example/", outcome: .timeout, tries: 3, detail: "no byte"),
        ]
        return page
    }

    @Test("Nothing from outside becomes markup, moves text, or is fetched; passwords are left out")
    func escaping() throws {
        let page = report().page.text
        #expect(page.hasPrefix("<!DOCTYPE html>") && page.hasSuffix("</html>\n"))
        #expect(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && page.contains("\\u{202e}\\x1b[2J"))
        let tags = Set(page.matches(of: /<\/?([a-zA-Z!][a-zA-Z0-9]*)/).map { String($0.1) })
        let known: Set = [
            "!DOCTYPE", "html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "p", "bdi", "dl", "div",
            "dt", "dd", "table", "tr", "th", "td", "/",
        ]
        #expect(tags.subtracting(known) == [])
        for word in [
            "<script", "<img", "<link", "<iframe", "url(", "@import", "onerror='", "secret",
            "\u{1B}",
        ] {
            #expect(!page.contains(word), "\(word)")
        }
        // As an attribute; as text they may stand in a URL.
        #expect(page.firstMatch(of: /<[a-z][^>]*\s(src|href|on[a-z]+)\s*=/) == nil)
        #expect(page.contains("default-src 'none'; style-src 'unsafe-inline'"))
        #expect(page.contains("https://u:***@a.example/"))
        #expect(page.utf8.count < 2_000_000)
    }

    @Test("Outcomes stand with images first, then by their number, and what there is has a share")
    func order() throws {
        var report = report()
        var counts = PrefetchCounts()
        for (outcome, count) in [(PrefetchOutcome.hit, 9), (.downloaded, 5_000), (.httpError, 1), (.truncated, 700)] {
            counts[outcome] = count
        }
        report.snapshot.status.counts = counts
        report.snapshot.status.total = 6_000
        let tables = report.sheet.parts.compactMap { part in if case .table(let table) = part { table } else { nil } }
        #expect(
            tables[0].rows.map { $0.joined(separator: " ") } == [
                "downloaded 5,000 83.3%", "hit 9 0.2%", "truncated 700 11.7%", "httpError 1 <0.1%", "open 290 4.8%",
            ])
    }

    @Test("Each element that is opened is closed, in its order")
    func wellFormed() throws {
        let page = report().page.text
        var open: [Substring] = []
        for match in page.matches(of: /<(\/?)([a-z][a-z0-9]*)[^>]*?(\/?)>/) {
            let (isEnd, name, isEmpty) = (!match.1.isEmpty, match.2, !match.3.isEmpty)
            if name == "meta" || isEmpty { continue }
            if isEnd {
                try #require(open.popLast() == name, "</\(name)> at \(page[match.range.lowerBound...].prefix(80))")
            } else {
                open.append(name)
            }
        }
        #expect(open == [])
    }

    @Test("Causes add up to the skipped, statuses are told apart, and what is not known of them is left over")
    func causes() {
        var snapshot = report().snapshot
        #expect(
            snapshot.causes.map { "\($0.name) \($0.count)" } == [
                "httpError 404 6", "timeout 3", "httpError 503 2", "httpError 1",
            ])
        snapshot.httpStatuses = [404: 50]
        #expect(snapshot.causes.reduce(0) { $0 + $1.count } == 12)
    }

    @Test("A batch of which nothing is known but that it is there has a page too")
    func empty() {
        let page = BatchPage(snapshot: BatchSnapshot(at: 1, status: status { _ in })).page.text
        #expect(page.contains("urls-7f3a") && !page.contains("nan") && !page.contains("<table"))
    }

    @Test("A large batch has a small page: hosts, causes and lines are bounded, and what is left out is counted")
    func large() {
        var report = report()
        var snapshot = report.snapshot
        for index in 0..<256 {
            snapshot.hosts["host-\(index).\(String(repeating: "long-", count: 40))example"] = .init(
                finished: index, skipped: 1, bytes: 1)
            snapshot.counts["machine-\(index):\(index)"] = snapshot.status.counts
        }
        for code in 400..<600 { snapshot.httpStatuses[code] = 1 }
        snapshot.status.counts[.httpError] = 1_000_000
        report.snapshot = snapshot
        report.failures = (0..<2_000).map { line in
            FailureDetail(
                line: line, url: "https://a.example/" + String(repeating: "x", count: 8_000), outcome: .httpError,
                httpStatus: 400 + line % 200, tries: 3, detail: String(repeating: "d", count: 500))
        }
        let page = report.page.text
        #expect(page.utf8.count < 2_000_000, "\(page.utf8.count)")
        #expect(page.contains("other hosts") && page.contains(" more. All of them: "))
    }

    @Test("How long transfers took is said where there were some")
    func durations() throws {
        var report = report()
        #expect(!report.page.text.contains("How long transfers took"))
        for index in 0..<100 {
            var timing = DownloadedImage.Timing()
            (timing.firstByte, timing.total) = (0.0301, index < 60 ? 0.0401 : 4)
            timing.reusedConnection = index > 0
            report.snapshot.status.fetches.add(
                FetchTally.Fetch(format: .jpeg, timing: timing, tries: 1), outcome: .downloaded, bytes: 5)
        }
        let page = report.page.text
        #expect(page.contains("the last requests of 100 images, 99.0% over a connection that was there"))
        #expect(page.contains("<dt>half of them in</dt><dd>44.0 ms</dd>") && page.contains("<dt>95% in</dt>"))
        #expect(page.contains("<dt>ttfb</dt><dd>30.1 ms</dd>") && !page.contains("<dt>tls</dt>"))
    }
}
