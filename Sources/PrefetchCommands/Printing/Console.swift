internal import Glibc
internal import Threading

/// Where commands print: results to standard output, everything else to standard error, one write(2) a line, so that lines of
/// several processes do not mix. A reader that has gone away ends the output quietly; a full disk is an error (74).
package enum Console {
    private static let outputFailure = Locked<Int32>(0)
    /// Notes held back while the last lines of the terminal are redrawn; nil while they are not.
    private static let waiting = Locked<[String]?>(nil)

    /// Notes as objects of JSON, for who reads standard error as such; errors are events then.
    private static let noteObject = Locked<(@Sendable (String) -> JSONText)?>(nil)

    private static let isSilent = Locked(false)

    /// Where a command prints that runs inside another program; nil for its own standard output and error.
    @TaskLocal package static var printed: Printed?

    /// What a command has printed.
    package final class Printed: Sendable {
        /// What commands to type begin with, in place of the name of this process.
        let program: String
        private let bytes = Locked((output: [UInt8](), errors: [UInt8]()))

        package init(program: String) { self.program = program }

        package var output: [UInt8] { bytes.withLock { $0.output } }
        package var errors: [UInt8] { bytes.withLock { $0.errors } }

        fileprivate func take(_ more: UnsafeRawBufferPointer, on file: Int32) {
            bytes.withLock { if file == STDOUT_FILENO { $0.output += more } else { $0.errors += more } }
        }
    }

    /// From now on notes are dropped; errors and results are not.
    static func silence() { isSilent.withLock { $0 = true } }

    /// From now on notes and errors are objects of JSON, one a line, as the events between which they stand.
    /// * `object`: a note as such a line.
    static func noteAsJSON(
        _ object: @escaping @Sendable (String) -> JSONText = { EventAnswer(name: "note", message: $0).json }
    ) {
        noteObject.withLock { $0 = object }
    }

    /// Whether a file of this process is a terminal of the command.
    static func isTerminal(_ file: Int32) -> Bool { printed == nil && isatty(file) == 1 }

    /// A line of the result, or several; see ``TerminalText/line(_:)``.
    package static func print(_ line: String) {
        let text = TerminalText.line(line)
        write((isTerminal(STDOUT_FILENO) ? TerminalText.shown(text) : text) + "\n", to: STDOUT_FILENO)
    }

    /// Raw bytes of the result; a terminal gets them as a person can read them.
    static func print(_ bytes: [UInt8]) {
        if isTerminal(STDOUT_FILENO) {
            let text = TerminalText.shown(TerminalText.line(String(decoding: bytes, as: UTF8.self)))
            return write(text, to: STDOUT_FILENO)
        }
        bytes.withUnsafeBytes { writeAll($0, to: STDOUT_FILENO) }
    }

    /// A line for the person who watches. While the last lines of the terminal are redrawn, it appears above them with the next frame.
    package static func note(_ line: String) {
        guard !isSilent.withLock({ $0 }) else { return }
        if let object = noteObject.withLock({ $0 }) { return log(object(line)) }
        let line = TerminalText.line(ShownURL.text(line))
        let isKept = waiting.withLock { waiting in
            waiting?.append(line)
            return waiting != nil
        }
        if !isKept { write(line + "\n", to: STDERR_FILENO) }
    }

    /// An object on standard error, one per line.
    static func log(_ object: JSONText) { write(object.text + "\n", to: STDERR_FILENO) }

    /// From now on notes are kept for ``takeNotes()``.
    static func holdNotes() {
        waiting.withLock { $0 = $0 ?? [] }
    }

    /// The notes that wait.
    static func takeNotes() -> [String] {
        waiting.withLock { waiting in
            defer { waiting = waiting == nil ? nil : [] }
            return waiting ?? []
        }
    }

    /// Prints the notes that wait behind `text`; from now on they are printed at once again.
    static func releaseNotes(behind text: String) {
        let notes = waiting.withLock { waiting in
            defer { waiting = nil }
            return waiting ?? []
        }
        write(text + notes.map { $0 + "\n" }.joined(), to: STDERR_FILENO)
    }

    /// A frame of the lines that are redrawn, in one write.
    static func draw(_ frame: String) {
        write(frame, to: STDERR_FILENO)
    }

    /// Two lines: what, and what to do.
    static func error(_ message: String, hint: String) {
        if noteObject.withLock({ $0 != nil }) {
            return log(EventAnswer(name: "error", message: message, hint: hint).json)
        }
        let message = TerminalText.escaped(message)
        write("error: \(message)\n" + (hint.isEmpty ? "" : "hint: \(TerminalText.escaped(hint))\n"), to: STDERR_FILENO)
    }

    /// The errno of a failed write to standard output; nil where all went well. A closed pipe counts as well.
    static var outputError: Int32? {
        let code = outputFailure.withLock { $0 }
        return code == 0 || code == EPIPE ? nil : code
    }

    /// Whether nobody reads standard output any more, as far as a write has met it.
    static var isOutputClosed: Bool { outputFailure.withLock { $0 == EPIPE } }

    /// Whether a write to standard output would reach anybody, as far as one has met it.
    static var takesMore: Bool { outputFailure.withLock { $0 == 0 } }

    /// That a batch goes on without the command, and the command that comes back to it.
    static func noteRunning(_ id: String, _ command: String, _ words: String) {
        let id = TerminalText.escaped(id)
        note("\(id) runs on; come back with: \(Shell.program) \(command) \(id)\(words)")
    }

    /// Whether standard output still has a reader: a pipe can be asked without writing (poll(2), POLLERR).
    static var hasReader: Bool {
        var entry = pollfd(fd: STDOUT_FILENO, events: 0, revents: 0)
        return poll(&entry, 1, 0) <= 0 || Int32(entry.revents) & (POLLERR | POLLHUP) == 0
    }

    private static func write(_ text: String, to file: Int32) {
        var text = text
        text.withUTF8 { writeAll(UnsafeRawBufferPointer($0), to: file) }
    }

    private static func writeAll(_ bytes: UnsafeRawBufferPointer, to file: Int32) {
        if let printed { return printed.take(bytes, on: file) }
        if file == STDOUT_FILENO, outputFailure.withLock({ $0 != 0 }) { return }
        var rest = bytes
        while !rest.isEmpty {
            let count = Glibc.write(file, rest.baseAddress, rest.count)
            if count < 0 {
                let code = errno
                if code == EINTR { continue }
                if file == STDOUT_FILENO { outputFailure.withLock { $0 = code } }
                return
            }
            rest = UnsafeRawBufferPointer(rebasing: rest[count...])
        }
    }
}
