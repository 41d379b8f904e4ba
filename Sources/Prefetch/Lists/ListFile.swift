internal import CLinux
internal import FoundationEssentials
internal import Glibc
internal import WebImage

/// Opens the file of a list. Lists are read several times, so input that can be read only once is copied to a file first.
package enum ListFile {
    private static let standardInput = "standard input"

    /// Whether a path can only be read once (`-`, a pipe, a socket, a terminal or a device), or is a file without a name for other
    /// processes. False for a missing path, and for a folder.
    package static func isStream(_ path: String) -> Bool {
        if let status = PathText.status(path), status.st_mode & S_IFMT == S_IFREG, status.st_nlink == 0 { return true }
        return isReadOnce(path)
    }

    private static func isReadOnce(_ path: String) -> Bool {
        if path == "-" { return true }
        guard let status = PathText.status(path) else { return false }
        return ![S_IFREG, S_IFDIR].contains(status.st_mode & S_IFMT)
    }

    /// What a list is called in messages: a path, or an address without its secrets.
    package static func name(of path: String) -> String {
        if descriptor(path) == STDIN_FILENO { return standardInput }
        return path.contains("://") ? URLRedaction.url(path) : PathText.shown(path)
    }

    /// What a batch says that a stream was.
    static func streamName(_ path: String) -> String {
        guard let descriptor = descriptor(path) else { return PathText.resolved(path) ?? path }
        return descriptor == STDIN_FILENO ? "-" : "pipe"
    }

    /// Whether a name in messages is a path that another command can read.
    static func isNamed(_ name: String) -> Bool { name != standardInput && descriptor(name) == nil }

    /// The name of a list's copy, and so of the batch: the file's name, `stdin` or `pipe`.
    package static func stem(of path: String) -> String {
        guard let descriptor = descriptor(path) else {
            let isAddress = path.contains("://")
            return URLList.stem(of: isAddress ? String(path.prefix { $0 != "?" && $0 != "#" }) : path)
        }
        return descriptor == STDIN_FILENO ? "stdin" : "pipe"
    }

    /// Opens a list for one pass. Waits for the first writer of a FIFO without a timeout.
    /// * `waiting`: called once if a FIFO has had no writer for a second.
    /// - Throws: `notFound`, `unreadableList` with the reason: a folder, a terminal, no permission.
    package static func open(_ path: String, waiting: () -> Void = {}) throws(PrefetchError) -> Int32 {
        let file: Int32
        if let descriptor = descriptor(path), isReadOnce(path) {
            // By its number: what it refers to may have no name that can be opened (a socket has none).
            file = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        } else if let status = PathText.status(path), status.st_mode & S_IFMT == S_IFIFO {
            file = openFIFO(path, waiting)
        } else {
            file = PathText.withBytes(path) { clinux_open($0, O_RDONLY | O_CLOEXEC, 0) }
        }
        guard file >= 0 else { throw failure(path, errno) }
        if let refusal = refusal(of: file, path) {
            close(file)
            throw refusal
        }
        return file
    }

    /// Why an open file cannot be a list; nil if it can.
    static func refusal(of file: Int32, _ path: String) -> PrefetchError? {
        var status = stat()
        if fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFDIR {
            return PrefetchError(
                .unreadableList, "\(name(of: path)) is a folder, and a list is a file",
                hint: "give a text file with one URL a line, or - for standard input")
        }
        guard isatty(file) == 1 else { return nil }
        return PrefetchError(
            .unreadableList, "\(name(of: path)) is a terminal", hint: "pipe a list into it: cat urls.txt | …")
    }

    /// Refuses streams for lists that are read several times.
    static func requireRepeatable(_ path: String) throws(PrefetchError) {
        guard isReadOnce(path) else { return }
        throw PrefetchError(
            .unreadableList, "\(name(of: path)) is not a regular file, and the list has to be read more than once",
            hint: "copy it into a file first: cat \(path) > urls.txt")
    }

    /// Copies a stream into a file of a folder and returns its path.
    /// * `waiting`: see ``open(_:waiting:)``.
    /// - Throws: as ``open(_:waiting:)``; `inputOutput` if it cannot be written, leaving nothing behind.
    package static func copy(
        _ path: String, into folder: String, waiting: () -> Void = {}
    ) throws(PrefetchError) -> String {
        let source = try open(path, waiting: waiting)
        defer { close(source) }
        let target = "\(folder)/\(stem(of: path))-\(getpid())-\(UInt32.random(in: 0...UInt32.max)).txt"
        let file = clinux_open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else {
            throw PrefetchError(.inputOutput, "cannot write \(target): \(String(cString: strerror(errno)))")
        }
        defer { close(file) }
        do throws(PrefetchError) { try copy(path, from: source, to: file, in: folder) } catch {
            unlink(target)
            throw error
        }
        return target
    }

    /// A path that can be read any number of times until this process ends, and leaves nothing behind: the path itself for a regular file
    /// or a folder, otherwise an unnamed copy in TMPDIR.
    package static func repeatable(_ path: String, waiting: () -> Void = {}) throws(PrefetchError) -> String {
        guard isReadOnce(path) else { return path }
        let copied = try copy(path, into: temporaryFolder, waiting: waiting)
        defer { unlink(copied) }
        let file = clinux_open(copied, O_RDONLY | O_CLOEXEC, 0)
        guard file >= 0 else { throw failure(copied, errno) }
        // Never closed: the path is valid as long as the descriptor (proc(5)).
        return "/proc/self/fd/\(file)"
    }

    /// A file without a name in TMPDIR, to read and write; -1 with `errno`. Without O_TMPFILE, which not every file system has.
    static func unnamed() -> Int32 {
        var name = Array("\(temporaryFolder)/prefetch-XXXXXX".utf8CString)
        let file = mkstemp(&name)
        guard file >= 0 else { return -1 }
        unlink(name)
        clinux_set_cloexec(file, 1)
        return file
    }

    package static var temporaryFolder: String { ProcessInfo.processInfo.environment["TMPDIR"] ?? "/tmp" }

    private static func copy(
        _ path: String, from source: Int32, to file: Int32, in folder: String
    ) throws(PrefetchError) {
        var buffer = [UInt8](repeating: 0, count: 1 << 18)
        while true {
            let count = buffer.withUnsafeMutableBytes { read(source, $0.baseAddress, $0.count) }
            if count == 0 { return }
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { throw failure(path, errno) }
            let code = OpenFile.write(Array(buffer[..<count]), to: file)
            guard code == 0 else {
                throw PrefetchError(
                    .inputOutput, "cannot copy the list from \(name(of: path)): \(String(cString: strerror(code)))",
                    hint: "make room in \(folder)")
            }
        }
    }

    /// The descriptor that a path names; nil for any other path.
    private static func descriptor(_ path: String) -> Int32? {
        if path == "-" || path == "/dev/stdin" { return STDIN_FILENO }
        for folder in ["/dev/fd/", "/proc/self/fd/"] where path.hasPrefix(folder) {
            return Int32(path.dropFirst(folder.count))
        }
        return nil
    }

    /// Opens a FIFO without blocking in open(2), which would prevent messages, and waits for its first bytes, or its end.
    private static func openFIFO(_ path: String, _ waiting: () -> Void) -> Int32 {
        let file = PathText.withBytes(path) { clinux_open($0, O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0) }
        guard file >= 0 else { return -1 }
        var entry = pollfd(fd: file, events: Int16(POLLIN), revents: 0)
        var waitLimit: Int32 = 1_000
        // Before its first writer a FIFO is not at its end (fifo(7), poll(2)).
        while true {
            let count = poll(&entry, 1, waitLimit)
            if count > 0 { break }
            if count == 0 {
                waiting()
                waitLimit = -1
            } else if errno != EINTR {
                let code = errno
                close(file)
                errno = code
                return -1
            }
        }
        _ = clinux_set_nonblock(file, 0)
        return file
    }

    private static func failure(_ path: String, _ code: Int32) -> PrefetchError {
        if code == ENOENT, let hint = addressHint(path) {
            return PrefetchError(
                .notFound, "\(PathText.shown(path)) is an address, and a list is a file here", hint: hint)
        }
        return PrefetchError(
            code == ENOENT ? .notFound : .unreadableList,
            "cannot read \(name(of: path)): \(String(cString: strerror(code)))",
            hint: "give a text file with one URL a line, or - for standard input")
    }

    /// How what an address leads to becomes a list; nil of what is none.
    private static func addressHint(_ path: String) -> String? {
        let command: String
        switch path.firstRange(of: "://").map({ path[..<$0.lowerBound] }) {
        case "http", "https": command = "curl -fL --remote-name"
        case "s3": command = "aws s3 cp"
        case "gs": command = "gcloud storage cp"
        case "hf": return "fetch it first: hf download OWNER/NAME PATH --repo-type dataset --local-dir ."
        default: return nil
        }
        let copy = "\(command) '\(PathText.shown(path))'\(command.hasPrefix("curl") ? "" : " .")"
        return "fetch it first: \(copy); then run the file"
    }
}
