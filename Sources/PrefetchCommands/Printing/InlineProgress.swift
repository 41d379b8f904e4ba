internal import Prefetch
internal import WebImage

/// Progress on a terminal: a few lines that are redrawn in place, at most five times a second, each frame in one write; what has to stay
/// is printed above them and scrolls.
///
/// The cursor is never hidden and rests below the lines, so there is nothing to restore: whatever ends the process, `kill -9`
/// included, leaves a terminal to type in.
struct InlineProgress {
    private static let interval = Duration.milliseconds(200)
    /// Failures a frame that are named.
    private static let named = 3

    private let isUnicode = Terminal.isUnicode
    private var rate = ProgressRate()
    private var lastDraw: ContinuousClock.Instant?
    private var height = 0
    private var width = 0
    private var failures: [String] = []
    private var unnamed = 0

    init() { Console.holdNotes() }

    /// Whether it is time for a frame.
    var isDue: Bool { lastDraw.map { ContinuousClock.now - $0 >= Self.interval } ?? true }

    /// How many more failures the next frame will name.
    var room: Int { Self.named - failures.count }

    /// Notes failures for the next frame: some with their line, of others only that they were.
    mutating func add(_ lines: [String], unnamed count: Int) {
        failures += lines
        unnamed += count
    }

    /// Draws a frame.
    mutating func draw(_ status: BatchStatus, _ load: WorkerLoad) {
        lastDraw = .now
        rate.add(status.counts)
        // One column stays free: some terminals wrap as soon as the last one is written.
        let columns = max(1, Terminal.width - 1)
        var above = Console.takeNotes()
        above += failures.map { TerminalText.cut($0, to: columns, isUnicode: isUnicode) }
        if unnamed > 0 {
            let more = "  and \(Wording.count(unnamed)) more skipped"
            above.append(TerminalText.cut(more, to: columns, isUnicode: isUnicode))
        }
        (failures, unnamed) = ([], 0)
        // A terminal that has become narrower may have folded the old lines; they stay where they are.
        let start = columns < width ? "\r\u{1B}[J" : erase
        let lines = InlineFrame.lines(status, load, rate, width: columns, isUnicode: isUnicode)
        (height, width) = (lines.count, columns)
        // Between these two the terminal shows nothing half done; those that do not know them ignore them.
        Console.draw("\u{1B}[?2026h" + start + (above + lines).map { $0 + "\n" }.joined() + "\u{1B}[?2026l")
    }

    /// Takes the lines away, for what follows them.
    mutating func end() {
        Console.releaseNotes(behind: height > 0 ? erase : "")
        height = 0
    }

    private var erase: String { height == 0 ? "\r\u{1B}[J" : "\r\u{1B}[\(height)A\u{1B}[J" }
}
