internal import Prefetch
internal import WebImage

/// Progress on a terminal: a few lines that are redrawn in place, at most five times a second, each frame in one write; what has to stay
/// is printed above them and scrolls.
///
/// The cursor is never hidden and rests below the lines, so there is nothing to restore: whatever ends the process, `kill -9`
/// included, leaves a terminal to type in.
actor InlineProgress {
    private static let interval = Duration.milliseconds(200)
    /// Failures a frame that are named.
    private static let named = 3

    private let isUnicode = Terminal.isUnicode
    private let isColoured: Bool
    private var reading: (status: BatchStatus, load: WorkerLoad)?
    private var isChanged = false
    private var rate = ProgressRate()
    private var lastDraw = ContinuousClock.now
    private var height = 0
    private var width = 0
    private var failures: [String] = []
    private var unnamed = 0

    init(isColoured: Bool = false) {
        self.isColoured = isColoured
        Console.holdNotes()
    }

    /// How many more failures the next frame will name.
    var room: Int { Self.named - failures.count }

    /// Takes a reading for the next frame, and failures: some with their line, of others only how many.
    func show(_ status: BatchStatus, _ load: WorkerLoad, failures lines: [String], unnamed count: Int) {
        let isSame = reading.map { $0 == (status, load) } ?? false
        isChanged = isChanged || !isSame || !lines.isEmpty || count > 0
        reading = (status, load)
        failures += lines
        unnamed += count
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
        rate.add(status.counts)
        // One column stays free: some terminals wrap as soon as the last one is written.
        let columns = max(1, Terminal.width - 1)
        var above =
            notes
            + failures.map {
                let line = TerminalText.cut(
                    TerminalText.cells($0, isUnicode: isUnicode), to: columns, isUnicode: isUnicode)
                return InlineFrame.failure(line, isColoured: isColoured)
            }
        if unnamed > 0 {
            let more = "  and \(Wording.count(unnamed)) more skipped"
            above.append(TerminalText.cut(more, to: columns, isUnicode: isUnicode))
        }
        (failures, unnamed) = ([], 0)
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
