import Testing
import WebImage

@testable import Queue

@Suite("What holds a worker back", .timeLimit(.minutes(5)))
struct LimitCauseTests {
    /// A worker that receives from all its slots.
    private static let busy: WorkerReport = {
        var report = WorkerReport()
        (report.inFlight, report.maxConcurrentDownloads, report.checking) = (32, 32, 2)
        (report.figures.slotsFull, report.figures.answering) = (100, 10)
        (report.figures.processors, report.figures.machineBusy, report.figures.cpu) = (4, 40, 90)
        (report.figures.checkCPU, report.figures.transferCPU) = (60, 25)
        return report
    }()

    /// One that has free slots, and URLs to claim.
    private static let idle: WorkerReport = {
        var report = busy
        (report.inFlight, report.checking) = (3, 0)
        report.figures.slotsFull = 0
        return report
    }()

    private static func cause(
        _ report: WorkerReport, peers: Int = 1, age: Int = 60_000, _ change: (inout WorkerReport) -> Void = { _ in }
    ) -> LimitCause {
        var report = report
        change(&report)
        return LimitCause.of(report, peers: peers, age: age)
    }

    @Test("Each cause is told from the figures that belong to it, and not below its threshold")
    func causes() {
        #expect(Self.cause(Self.busy) == .link)
        #expect(Self.cause(Self.busy) { $0.figures.answering = 51 } == .servers)
        #expect(Self.cause(Self.busy) { $0.figures.answering = 50 } == .link)
        #expect(Self.cause(Self.idle) == .nothing)
        #expect(Self.cause(Self.idle, age: 999) == .starting)
        #expect(Self.cause(Self.busy) { $0.isPaused = true } == .paused)
        #expect(Self.cause(Self.busy) { $0.trouble = "no space left on device" } == .fault)
        #expect(Self.cause(Self.idle) { $0.figures.lacksWork = true } == .list)
        #expect(Self.cause(Self.busy) { $0.figures.lacksWork = true } == .link)
        #expect(Self.cause(Self.idle) { ($0.figures.redisLongest, $0.figures.redisBusy) = (51, 31) } == .redis)
        #expect(Self.cause(Self.idle) { ($0.figures.redisLongest, $0.figures.redisBusy) = (900, 30) } == .nothing)
        #expect(Self.cause(Self.idle) { ($0.figures.redisLongest, $0.figures.redisBusy) = (50, 100) } == .nothing)
        // What is in transfer does not wait for it.
        #expect(Self.cause(Self.busy) { ($0.figures.redisLongest, $0.figures.redisBusy) = (900, 100) } == .link)
        #expect(Self.cause(Self.busy) { $0.figures.isRefused = true } == .redis)
        #expect(Self.cause(Self.busy) { $0.figures.fileOldest = 1_001 } == .disk)
        #expect(Self.cause(Self.busy) { $0.figures.fileBusy = 51 } == .disk)
        #expect(Self.cause(Self.busy) { $0.figures.fileBusy = 50 } == .link)
        #expect(Self.cause(Self.idle) { $0.names = Self.names(waiting: 1) } == .resolver)
        #expect(Self.cause(Self.busy) { $0.names = Self.names(waiting: 1) } == .link)
        #expect(Self.cause(Self.busy) { $0.names = Self.names(waiting: 1, silence: 6_000) } == .resolver)
        #expect(Self.cause(Self.busy) { $0.figures.rateLimited = 51 } == .rate)
        #expect(Self.cause(Self.idle) { ($0.inFlight, $0.stalled) = (6, 3) } == .servers)
        #expect(Self.cause(Self.idle) { ($0.inFlight, $0.stalled) = (6, 2) } == .nothing)
    }

    @Test("The processors hold it back if the machine is busy with its workers, or one thread has a whole processor")
    func processors() {
        // 40 % of four processors.
        func full(_ report: inout WorkerReport) { (report.figures.machineBusy, report.figures.cpu) = (95, 160) }
        #expect(Self.cause(Self.busy, full) == .checking)
        let transfers = Self.cause(Self.busy) { report in
            full(&report)
            (report.figures.checkCPU, report.figures.transferCPU) = (50, 60)
        }
        #expect(transfers == .processor)
        #expect(Self.cause(Self.busy) { ($0.figures.machineBusy, $0.figures.cpu) = (95, 156) } == .link)
        #expect(Self.cause(Self.busy) { ($0.figures.machineBusy, $0.figures.cpu) = (90, 160) } == .link)
        // Percent of the machine: four times 25, twice 19.
        #expect(Self.cause(Self.busy, peers: 4) { ($0.figures.machineBusy, $0.figures.cpu) = (95, 100) } == .checking)
        #expect(Self.cause(Self.busy, peers: 2) { ($0.figures.machineBusy, $0.figures.cpu) = (95, 76) } == .link)
        #expect(Self.cause(Self.busy) { ($0.figures.checkCPU, $0.figures.transferCPU) = (10, 91) } == .processor)
    }

    @Test("A Redis that is slow because the processors are short is not blamed")
    func starved() {
        func starved(_ report: inout WorkerReport) {
            (report.figures.redisLongest, report.figures.redisBusy) = (600, 80)
            // Another program has the machine.
            (report.figures.machineBusy, report.figures.cpu) = (97, 40)
            (report.figures.checkCPU, report.figures.transferCPU) = (10, 25)
        }
        #expect(Self.cause(Self.idle, starved) == .processor)
        #expect(
            Self.cause(Self.idle) {
                starved(&$0); $0.figures.checkCPU = 26
            } == .checking)
        #expect(
            Self.cause(Self.idle) {
                starved(&$0); $0.figures.machineBusy = 90
            } == .redis)
        #expect(
            Self.cause(Self.idle) {
                starved(&$0); $0.figures.isRefused = true
            } == .redis)
        #expect(
            Self.cause(Self.idle) {
                starved(&$0); $0.figures.redisBusy = 30
            } == .nothing)
    }

    @Test("Politeness is named if free slots could be used, however few URLs the hosts leave in transfer")
    func politeness() {
        #expect(Self.cause(Self.idle) { $0.waitingForHost = 1 } == .politeness)
        #expect(Self.cause(Self.idle) { ($0.waitingForHost, $0.inFlight) = (7, 30) } == .nothing)
        #expect(Self.cause(Self.idle) { ($0.waitingForHost, $0.inFlight) = (8, 32) } == .politeness)
        // The last URLs of a list wait for their host, not for the list.
        #expect(
            Self.cause(Self.idle) { ($0.waitingForHost, $0.figures.lacksWork) = (4, true) } == .politeness)
        #expect(Self.cause(Self.busy) { $0.waitingForHost = 400 } == .link)
    }

    /// Each has the figures of the causes before it, too: the first is named.
    @Test("Causes are told in one order, so that none is named that only follows from another")
    func order() {
        let changes: [(LimitCause, (inout WorkerReport) -> Void)] = [
            (.rate, { $0.figures.rateLimited = 90 }),
            (.resolver, { $0.names = Self.names(waiting: 1, silence: 6_000) }),
            (.politeness, { $0.waitingForHost = 40 }),
            (.disk, { $0.figures.fileBusy = 90 }),
            (.redis, { ($0.figures.redisLongest, $0.figures.redisBusy) = (400, 90) }),
            (.fault, { $0.trouble = "no network" }),
            (.disk, { $0.figures.fileOldest = 4_000 }),
            (.paused, { $0.isPaused = true }),
        ]
        var report = Self.idle
        for (cause, change) in changes {
            change(&report)
            #expect(LimitCause.of(report, peers: 1, age: 60_000) == cause)
        }
    }

    private static func names(waiting: Int, silence: Int = 0) -> NameReport {
        var names = NameReport()
        (names.waiting, names.silence) = (waiting, silence)
        return names
    }

    @Test("A record has all figures, and reads hostile ones as none")
    func record() {
        var report = Self.busy
        report.limit = .politeness
        report.figures.lacksWork = true
        report.figures.hostWaits = [
            HostWait(host: "a.example", reason: .transfers, count: 400),
            HostWait(host: "#odd name", reason: .backOff, count: 2),
        ]
        (report.figures.received, report.figures.redisLongest, report.figures.redisBusy) = (12_000_000, 3, 4)
        (report.figures.fileOldest, report.figures.fileBusy, report.figures.rateLimited) = (5, 6, 7)
        report.figures.isRefused = true
        let fields = Dictionary(report.fields) { $1 }
        let read = WorkerReport(fields: fields)
        #expect(read.figures == report.figures && read.limit == .politeness)
        #expect(WorkerReport(fields: [:]).figures == WorkerFigures())
        let hostile = WorkerReport(fields: [
            "limit": "\u{1B}[2J", "slots_full": "-5", "processors": "0", "cpu_share": "1e99",
            "host_waits": "back-off 3\nnone 1 a\nrate x b\nrate 0 c\nrate 2 d\nrate 1 e\nrate 1 f\nrate 9 g",
        ])
        #expect(hostile.limit == .starting && hostile.figures.slotsFull == 0 && hostile.figures.processors == 1)
        #expect(hostile.figures.hostWaits.allSatisfy { $0.count > 0 } && hostile.figures.hostWaits.count <= 3)
    }
}
