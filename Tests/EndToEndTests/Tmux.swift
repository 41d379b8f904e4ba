import TestSupport

/// A terminal of its own with a shell in it: tmux on a private socket, ended with the last reference.
final class Tmux: Sendable {
    private let folder = TemporaryDirectory()
    private let server: ChildProcess

    /// * `environment`: what the shell has beside LC_ALL=C.UTF-8.
    init(columns: Int, rows: Int, environment: [String: String] = [:]) async throws {
        var variables: [String: String] = [:]
        variables["LC_ALL"] = "C.UTF-8"
        for (name, value) in environment { variables[name] = value }
        // In the foreground (-D), so that it ends with the tests.
        folder.write(Array("set -g exit-empty off\n".utf8), to: "conf")
        server = try await ChildProcess(
            "/usr/bin/env", ["tmux", "-S", folder.path("s"), "-f", folder.path("conf"), "-D"], environment: variables)
        try await until { try await self.run("list-commands") != nil }
        try await until {
            try await self.run("new-session", "-d", "-x", "\(columns)", "-y", "\(rows)", "env PS1='$ ' bash --norc")
                != nil
        }
    }

    /// What a command of tmux says; nil where it fails.
    @discardableResult func run(_ words: String...) async throws -> String? {
        // Without starting one in the background (-N): that would stay.
        let child = try await ChildProcess("/usr/bin/env", ["tmux", "-N", "-S", folder.path("s")] + words)
        return await child.wait() == .exited(0) ? child.stdout : nil
    }

    func resize(_ columns: Int, _ rows: Int) async throws {
        try await run("resize-window", "-x", "\(columns)", "-y", "\(rows)")
    }

    /// Types a line.
    func type(_ line: String) async throws {
        try await run("send-keys", "-l", line)
        try await run("send-keys", "Enter")
    }

    /// Presses keys by their names of tmux.
    func press(_ keys: String...) async throws {
        for key in keys { try await run("send-keys", key) }
    }

    /// The rows as they stand.
    var rows: [String] {
        get async throws {
            (try await run("capture-pane", "-p") ?? "").split(separator: "\n", omittingEmptySubsequences: false)
                .map(String.init)
        }
    }

    /// What stands there, as one text.
    var text: String { get async throws { try await rows.joined(separator: "\n") } }

    /// Whether the other screen is shown, and whether the cursor is.
    var modes: (isAlternate: Bool, hasCursor: Bool) {
        get async throws {
            let text = try await run("display-message", "-p", "#{alternate_on} #{cursor_flag}") ?? ""
            return (text.hasPrefix("1"), text.contains(" 1"))
        }
    }

    /// Waits for a text.
    func wait(for part: String) async throws { try await until { try await self.text.contains(part) } }

    /// Whether the terminal takes a line as a shell's does: echo on, lines on, the main screen, a cursor.
    func isSane() async throws -> Bool {
        let modes = try await modes
        try await type("clear; stty -a | tr ' ;' '\\n\\n' | grep -cxE 'icanon|echo|isig|iexten|ixon'; echo sa''ne")
        try await wait(for: "sane")
        return try await text.contains("5\nsane") && !modes.isAlternate && modes.hasCursor
    }
}
