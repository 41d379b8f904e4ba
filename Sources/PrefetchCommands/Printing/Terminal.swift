internal import CLinux
internal import FoundationEssentials
internal import Glibc

/// The terminal behind standard error.
enum Terminal {
    /// Whether lines can be redrawn there: it is a terminal, and TERM names one that can move its cursor.
    static var canRedraw: Bool {
        Console.isTerminal(STDERR_FILENO) && isObedient
    }

    /// Whether TERM names a terminal that supports cursor movement.
    static var isObedient: Bool { environment("TERM").map { $0 != "dumb" } ?? false }

    /// Its columns now; 80 if they are unknown.
    static var width: Int { size(of: STDERR_FILENO).columns }

    /// Columns and rows of a terminal now; 80 and 24 if they are unknown.
    static func size(of descriptor: Int32) -> (columns: Int, rows: Int) {
        var (columns, rows) = (Int32(0), Int32(0))
        guard clinux_terminal_size(descriptor, &columns, &rows) == 0 else { return (80, 24) }
        return (columns > 0 ? Int(columns) : 80, rows > 0 ? Int(rows) : 24)
    }

    /// Whether it takes more than ASCII: LC_ALL, else LC_CTYPE, else LANG says UTF-8 (locale(7)).
    static var isUnicode: Bool {
        let name = environment("LC_ALL") ?? environment("LC_CTYPE") ?? environment("LANG") ?? ""
        return name.lowercased().filter { $0 != "-" }.contains("utf8")
    }

    private static func environment(_ name: String) -> String? {
        ProcessInfo.processInfo.environment[name].flatMap { $0.isEmpty ? nil : $0 }
    }
}
