internal import CLinux
internal import Glibc
internal import Threading

/// The terminal while the dashboard has it: the other screen, no echo, no cursor. Whatever ends the process but SIGKILL gives it back as
/// it was.
final class DashTerminal: Sendable {
    private static let begin = "\u{1B}[?1049h\u{1B}[?25l\u{1B}[2J"
    /// Frame's end, look, cursor, main screen.
    private static let end: StaticString = "\u{1B}[?2026l\u{1B}[0m\u{1B}[?25h\u{1B}[?1049l"

    private let settings = Locked<termios?>(nil)

    init() {
        // The terminal is put back also from the background, where tcsetattr(3) would stop this process.
        signal(SIGTTOU, SIG_IGN)
    }

    /// Whether both ends are a terminal that obeys.
    static var isThere: Bool { isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 && Terminal.isObedient }

    /// Takes the terminal; nothing where it has it.
    func enter() {
        var old = termios()
        guard settings.withLock({ $0 == nil }), tcgetattr(STDIN_FILENO, &old) == 0 else { return }
        settings.withLock { $0 = old }
        Self.end.withUTF8Buffer { text in
            text.withMemoryRebound(to: CChar.self) { _ = clinux_restore_on_crash(STDOUT_FILENO, $0.baseAddress) }
        }
        var raw = old
        // Ctrl-C, Ctrl-Z and Ctrl-\ stay signals; Ctrl-S must not hold the screen.
        raw.c_lflag &= ~tcflag_t(ECHO | ICANON | IEXTEN)
        raw.c_iflag &= ~tcflag_t(IXON)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &raw)
        write(Self.begin)
    }

    /// Gives it back; nothing where it is given back already.
    func leave() {
        guard
            var old = settings.withLock({ settings in
                defer { settings = nil }
                return settings
            })
        else { return }
        write(Self.end.description)
        _ = clinux_restore_on_crash(-1, nil)
        // What was typed and not read goes to nobody.
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &old)
    }

    /// Columns and rows now; 80x24 where it does not say.
    var size: (columns: Int, rows: Int) { Terminal.size(of: STDOUT_FILENO) }

    /// Shows a frame: one write(2), and between its marks the terminal shows nothing half done.
    func draw(_ lines: [StyledLine], isColoured: Bool) {
        guard settings.withLock({ $0 != nil }) else { return }
        var text = "\u{1B}[?2026h\u{1B}[?7l"
        for (row, line) in lines.enumerated() {
            // Erased first: behind a full line the cursor stands on its last column still.
            text += "\u{1B}[\(row + 1);1H\u{1B}[2K\(line.painted(isColoured: isColoured))"
        }
        text += "\u{1B}[?7h\u{1B}[?2026l"
        write(text)
    }

    /// Puts a text into the clipboard of the terminal, where it knows how (OSC 52).
    func copy(_ text: String) {
        write("\u{1B}]52;c;\(Self.base64(Array(text.utf8.prefix(8_192))))\u{7}")
    }

    private func write(_ text: String) {
        var text = text
        text.withUTF8 { bytes in
            var rest = UnsafeRawBufferPointer(bytes)
            while !rest.isEmpty {
                let count = Glibc.write(STDOUT_FILENO, rest.baseAddress, rest.count)
                if count < 0 && errno == EINTR { continue }
                // A terminal that has gone: its hang-up ends the dashboard.
                guard count > 0 else { return }
                rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            }
        }
    }

    static func base64(_ bytes: [UInt8]) -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
        var out = ""
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let part = bytes[start..<min(start + 3, bytes.count)]
            let number = part.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - part.count))
            for place in 0..<4 {
                out.append(place <= part.count ? alphabet[number >> (18 - 6 * place) & 63] : "=")
            }
        }
        return out
    }
}
