internal import Glibc
internal import Threading

/// Where commands print: results to standard output, everything else to standard error, one write(2) a line, so that lines of
/// several processes do not mix. A reader that has gone away ends the output quietly; a full disk is an error (74).
enum Console {
    private static let outputFailure = Locked<Int32>(0)

    /// A line of the result.
    static func print(_ line: String) {
        write(line + "\n", to: STDOUT_FILENO)
    }

    /// Raw bytes of the result.
    static func print(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { writeAll($0, to: STDOUT_FILENO) }
    }

    /// A line for the person who watches.
    static func note(_ line: String) {
        write(line + "\n", to: STDERR_FILENO)
    }

    /// Two lines: what, and what to do.
    static func error(_ message: String, hint: String) {
        let message = TerminalText.escaped(message)
        write("error: \(message)\n" + (hint.isEmpty ? "" : "hint: \(TerminalText.escaped(hint))\n"), to: STDERR_FILENO)
    }

    /// The errno of a failed write to standard output; nil where all went well. A closed pipe counts as well.
    static var outputError: Int32? {
        let code = outputFailure.withLock { $0 }
        return code == 0 || code == EPIPE ? nil : code
    }

    /// Whether nobody reads standard output any more.
    static var isOutputClosed: Bool { outputFailure.withLock { $0 == EPIPE } }

    private static func write(_ text: String, to file: Int32) {
        var text = text
        text.withUTF8 { writeAll(UnsafeRawBufferPointer($0), to: file) }
    }

    private static func writeAll(_ bytes: UnsafeRawBufferPointer, to file: Int32) {
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
