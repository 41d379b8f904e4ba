internal import Prefetch
internal import WebImage

/// Progress on a terminal: a few lines that are redrawn in place, at most five times a second, each frame in one write; lines that have to stay
/// are printed above them and scroll.
///
/// The cursor is never hidden and rests below the lines, so there is nothing to restore: whatever ends the process, `kill -9`
/// included, leaves a terminal to type in.
actor InlineProgress {
    private static let interval = Duration.milliseconds(200)
    private let isUnicode = Terminal.isUnicode
    private let isColoured: Bool
    private var reading: (status: BatchStatus, load: WorkerLoad)?
    private var readAt = ContinuousClock.now
    private var isChanged = false
    private var rate = ProgressRate()
    private var lastDraw = ContinuousClock.now
    private var height = 0
    private var width = 0
    private var failures: [String] = []
    private var quota: FailureQuota

    init(isColoured: Bool = false, namesEveryFailure: Bool = false) {
        self.isColoured = isColoured
        quota = FailureQuota(inAll: namesEveryFailure ? .max : 20)
        Console.holdNotes()
    }

    /// How many more failures may be named now.
    var room: Int { quota.room(at: .now) }

    /// Takes a reading for the next frame, and failures with their line, ``room`` at most. The frame counts all of them by cause.
    func show(_ status: BatchStatus, _ load: WorkerLoad, failures lines: [String]) {
        let isSame = reading.map { $0 == (status, load) } ?? false
        isChanged = isChanged || !isSame || !lines.isEmpty
        (reading, readAt) = ((status, load), .now)
        failures += lines
        if quota.take(lines.count, at: .now) {
            failures.append(
                "  further failures are only counted; all of them: prefetch-coord failures \(TerminalText.escaped(status.id))"
            )
        }
    }

    /// Draws frames until the task is cancelled: by a clock of its own, so that what is noted appears also while Redis is away.
    func run() async {
        while !Task.isCancelled {
            draw()
            do { try await Task.sleep(for: Self.interval) } catch { return }
        }
    }

    /// Takes the lines away, for what follows them.
    func end() {
        draw()
        Console.releaseNotes(behind: height > 0 ? erase : "")
        height = 0
    }

    /// A frame, where there is something new, or a rate to be corrected.
    private func draw() {
        let notes = Console.takeNotes()
        let now = ContinuousClock.now
        guard let (status, load) = reading, isChanged || !notes.isEmpty || now - lastDraw >= .seconds(1) else {
            if !notes.isEmpty { Console.draw(notes.map { $0 + "\n" }.joined()) }
            return
        }
        (lastDraw, isChanged) = (now, false)
        rate.add(status, age: now - readAt)
        // One column stays free: some terminals wrap as soon as the last one is written.
        let columns = max(1, Terminal.width - 1)
        let above =
            notes
            + failures.map {
                let line = DisplayWidth.cut(
                    TerminalText.cells($0, isUnicode: isUnicode), to: columns, mark: DisplayWidth.mark(isUnicode))
                return InlineFrame.failure(line, isColoured: isColoured)
            }
        failures = []
        // A terminal that has become narrower may have folded the old lines; they stay where they are.
        let start = columns < width ? "\r\u{1B}[J" : erase
        let lines = InlineFrame.lines(
            status, load, rate, width: columns, isUnicode: isUnicode, isColoured: isColoured)
        (height, width) = (lines.count, columns)
        // Between these two the terminal shows nothing half done; those that do not know them ignore them.
        Console.draw("\u{1B}[?2026h" + start + (above + lines).map { $0 + "\n" }.joined() + "\u{1B}[?2026l")
    }

    private var erase: String { height == 0 ? "\r\u{1B}[J" : "\r\u{1B}[\(height)A\u{1B}[J" }
}

/// How many failures a live display names: at most 3 a second and 20 in all, or a list with many would scroll everything else away.
struct FailureQuota {
    private static let perSecond = 3

    private let inAll: Int
    private var named = 0
    private var second = (begin: ContinuousClock.now, named: 0)

    init(inAll: Int = 20) { self.inAll = inAll }

    /// How many may be named now.
    func room(at now: ContinuousClock.Instant) -> Int {
        guard inAll < .max else { return .max }
        let recent = now - second.begin < .seconds(1) ? second.named : 0
        return min(Self.perSecond - recent, inAll - named)
    }

    /// So many are named; true where these were the last.
    mutating func take(_ count: Int, at now: ContinuousClock.Instant) -> Bool {
        if now - second.begin >= .seconds(1) { second = (now, 0) }
        second.named += count
        named += count
        return count > 0 && named >= inAll
    }
}
