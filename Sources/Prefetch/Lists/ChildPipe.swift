internal import CLinux
internal import Glibc

/// A program whose output is read. It ends with this object, at the latest at its next line.
final class ChildPipe {
    struct StartError: Error {
        let reason: String
    }

    /// Bytes of what it says that are kept.
    private static let longestWords = 2_000

    private let pid: pid_t
    private var output: Int32
    /// What it says on standard error: an unnamed file.
    private let words: Int32
    private var hasEnded = false

    /// Starts it, with the environment of this process but for its secrets.
    /// * `input`: its standard input.
    init(_ path: String, _ arguments: [String], input: Int32) throws(StartError) {
        var ends: [Int32] = [-1, -1]
        words = ListFile.unnamed()
        guard words >= 0, pipe(&ends) == 0 else {
            let reason = String(cString: strerror(errno))
            if words >= 0 { close(words) }
            throw StartError(reason: reason)
        }
        for end in ends { clinux_set_cloexec(end, 1) }
        let list: [UnsafeMutablePointer<CChar>?] = ([path] + arguments).map { strdup($0) } + [nil]
        defer { for word in list { free(word) } }
        let descriptors = [input, ends[1], words], none: [Int32] = [-1, -1]
        // No signal with the end of this thread: a pipe without a reader ends it.
        pid = ChildEnvironment.withVariables {
            clinux_spawn(path, list, $0, descriptors, none, -1, 0, 1)
        }
        let code = errno
        close(ends[1])
        output = ends[0]
        guard pid > 0 else {
            close(ends[0])
            close(words)
            hasEnded = true
            throw StartError(reason: String(cString: strerror(code)))
        }
    }

    deinit {
        if output >= 0 { close(output) }
        if !hasEnded {
            kill(pid, SIGKILL)
            wait()
        }
        close(words)
    }

    /// Its standard output, for the caller to close.
    func takeOutput() -> Int32 {
        defer { output = -1 }
        return output
    }

    /// Waits for its end; why it failed, in its own words, or nil.
    func failure() -> String? {
        guard !hasEnded else { return nil }
        let status = wait()
        guard clinux_wexited(status) == 0 || clinux_wexitstatus(status) != 0 else { return nil }
        var text = [UInt8](repeating: 0, count: Self.longestWords)
        let count = text.withUnsafeMutableBytes { pread(words, $0.baseAddress, $0.count, 0) }
        let lines = String(decoding: text.prefix(max(0, count)), as: UTF8.self).split(separator: "\n")
        let said = lines.first.map(String.init) ?? ""
        if clinux_wexited(status) == 0 { return "the program was killed by signal \(clinux_wtermsig(status))" }
        return said.isEmpty ? "the program ended with status \(clinux_wexitstatus(status))" : said
    }

    @discardableResult private func wait() -> Int32 {
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0, errno == EINTR {}
        hasEnded = true
        return status
    }
}
