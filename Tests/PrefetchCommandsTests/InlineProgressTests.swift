import Prefetch
import Testing
import WebImage

@testable import PrefetchCommands

@Suite(.timeLimit(.minutes(5)))
struct InlineProgressTests {
    @Test(arguments: [("abc", 3, "abc"), ("abcd", 3, "..."), ("abcdef", 5, "ab..."), ("漢字", 4, "漢字"), ("漢字", 3, "...")])
    func textIsCutToItsColumns(text: String, columns: Int, cut: String) {
        #expect(DisplayWidth.cut(text, to: columns, mark: "...") == cut)
    }

    @Test func aCutTextHasAnEllipsisWhereThereIsUnicode() {
        #expect(DisplayWidth.cut("abcdef", to: 5, mark: "…") == "abcd…")
        #expect(DisplayWidth.cut("漢字漢字", to: 5, mark: "…") == "漢字…")
        #expect(DisplayWidth.cut("abcdef", to: 1, mark: "…") == ".")
        #expect(DisplayWidth.cut("abcdef", to: 0, mark: "…") == "")
    }

    @Test func aRateEventIsDueOnceASecondAndKnowsWhenItCannotTellTheEnd() {
        var events = RateEvents()
        let start = ContinuousClock.now
        func status(_ finished: Int) -> BatchStatus {
            var counts = PrefetchCounts()
            counts[.downloaded] = finished
            counts.bytes = finished * 10_000
            return BatchStatus(
                id: "b", state: .running, total: 1_000, counts: counts, created: 1, ended: 0, at: 2 + 10 * finished)
        }
        let first = events.isDue(status(0), at: start)
        #expect(!first)
        let due = (1...40).filter { events.isDue(status($0 * 10), at: start + .milliseconds(100 * $0)) }
        #expect(due == [10, 20, 30, 40])
        var load = WorkerLoad()
        (load.workers, load.report.inFlight) = (2, 900)
        #expect(
            events.event(status(400), load).json.text
                == #"{"event":"rate","finished":400,"total":1000,"rate":100,"eta_s":6,"MBps":1,"in_flight":600,"limit":null}"#
        )
        (load.paused, load.idle) = (2, 2)
        #expect(events.event(status(400), load).json.text.contains(#""eta_s":null"#))
        #expect(RateEvents().event(status(0), WorkerLoad()).json.text.contains(#""rate":0,"eta_s":null,"MBps":0"#))
    }

    @Test func loadsOfWorkersAddUp() {
        let first = WorkerReport(fields: [
            "in_flight": "3", "checking": "2", "stalled": "1", "waiting_for_host": "9", "retrying": "4", "trouble": "",
        ])
        let second = WorkerReport(fields: ["in_flight": "2", "trouble": "disk full"])
        let load = WorkerLoad([
            "a:1": .init(id: "a:1", first, leaseLeft: 9_000), "b:2": .init(id: "b:2", second, leaseLeft: 9_000),
        ])
        #expect(
            (load.workers, load.report.inFlight, load.report.stalled, load.report.waitingForHost, load.report.retrying)
                == (2, 5, 1, 9, 4))
        #expect(load.trouble == "b:2 paused: disk full" && load.idle == 1 && !load.isIdle)
        // A heartbeat is up to a second old; the counts beside it are not.
        #expect(load.beside(left: 20) == load)
        let beside = [18, 14, 6, 3, 0, -1].map { load.beside(left: $0) }
        #expect(
            beside.map {
                [
                    $0.report.inFlight, $0.report.stalled, $0.report.checking, $0.report.waitingForHost,
                    $0.report.retrying,
                ]
            }
                == [
                    [5, 1, 2, 9, 2], [5, 1, 2, 7, 0], [5, 1, 1, 0, 0], [3, 1, 0, 0, 0], [0, 0, 0, 0, 0],
                    [0, 0, 0, 0, 0],
                ])
    }
}

@Suite("Failures that a live display names")
struct FailureQuotaTests {
    @Test("At most three a second and twenty in all; the last ones are told as such")
    func quota() {
        var quota = FailureQuota()
        let start = ContinuousClock.now
        var named = 0
        var lasts: [Int] = []
        for frame in 0..<100 {
            let now = start + .milliseconds(200 * frame)
            let room = quota.room(at: now)
            #expect(room >= 0 && room <= 3)
            named += room
            if quota.take(room, at: now) { lasts.append(frame) }
            if frame == 4 { #expect(named == 3) }
            if frame == 5 { #expect(named == 6) }
        }
        // Six full seconds of three, and two of the seventh.
        #expect(named == 20 && lasts == [30])
    }

    @Test("The last URLs are grouped by what they wait for, with the longest end where all have one")
    func lastURLs() {
        func url(_ state: OpenURL.State, until: Int?) -> OpenURL {
            var url = OpenURL(index: 0, state: state)
            url.until = until
            return url
        }
        let urls = [
            url(.stalled, until: 12_400), url(.retrying, until: 4_000), url(.stalled, until: 3_000),
            url(.verifying, until: nil),
        ]
        let last = LastURLs(count: 4, urls, at: 1_000)
        #expect(
            last.text
                == "last 4 URLs: 2 stalled, 12 s at most; 1 waiting for the next try, 3 s at most; 1 with the decoder")
        #expect(last.word == "2-stalled(12s),1-retrying(3s),1-verifying")
        let unknown = LastURLs(count: 2, [url(.stalled, until: nil), url(.stalled, until: 9_000)], at: 0)
        #expect(unknown.text == "last 2 URLs: 2 stalled")
    }
}
