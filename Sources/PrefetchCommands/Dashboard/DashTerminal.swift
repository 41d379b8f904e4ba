internal import CLinux
internal import Glibc
internal import Threading

/// The terminal in full-screen mode: alternate screen, no echo, no cursor. It is restored however the process ends, except by SIGKILL.
final class DashTerminal: Sendable {
    private static let begin = "\u{1B}[?1049h\u{1B}[?25l\u{1B}[2J"
    /// End of frame, style, cursor, main screen.
    private static let end: StaticString = "\u{1B}[?2026l\u{1B}[0m\u{1B}[?25h\u{1B}[?1049l"

    private let settings = Locked<termios?>(nil)

    init() {
        // The terminal is restored also from the background, where tcsetattr(3) would stop this process.
        signal(SIGTTOU, SIG_IGN)
    }

    /// Whether input and output are a capable terminal.
    static var isThere: Bool { isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 && Terminal.isObedient }

    /// Enters full-screen mode. Idempotent.
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

    /// Restores the terminal. Idempotent.
    func leave() {
        guard
            var old = settings.withLock({ settings in
                defer { settings = nil }
                return settings
            })
        else { return }
        write(Self.end.description)
        _ = clinux_restore_on_crash(-1, nil)
        // Discards unread input.
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &old)
    }

    /// Columns and rows; 80x24 if unknown.
    var size: (columns: Int, rows: Int) { Terminal.size(of: STDOUT_FILENO) }

    /// Draws a frame: one write(2), with marks between which the terminal does not refresh.
    func draw(_ lines: [StyledLine], isColoured: Bool) {
        guard settings.withLock({ $0 != nil }) else { return }
        var text = "\u{1B}[?2026h\u{1B}[?7l"
        for (row, line) in lines.enumerated() {
            // Erased first: after a full line the cursor is still in its last column.
            text += "\u{1B}[\(row + 1);1H\u{1B}[2K\(line.painted(isColoured: isColoured))"
        }
        text += "\u{1B}[?7h\u{1B}[?2026l"
        write(text)
    }

    /// Copies a text to the terminal's clipboard, if supported (OSC 52).
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
                // The terminal is gone: its hang-up ends the dashboard.
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
