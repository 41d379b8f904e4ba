internal import CLinux
internal import Glibc
internal import Threading
internal import WebImage

/// A list that comes through a pipe, whose URLs are queued as they come: its lines are kept in a file first, so that they can be read again.
/// The file has whole lines only, and becomes the list of the batch.
package final class ListPipe: Sendable {
    private struct State {
        /// Bytes of a line whose end has not come.
        var partial: [UInt8] = []
        var hasEnded = false
        var head: [UInt8] = []
        let hasher = SHA256Hasher()
        /// Of all lines, once it has ended.
        var hash = ""
        var checks = ListChecks()
        /// Lines that were checked.
        var checked = 0
    }

    /// Bytes of the beginning by which its format is known.
    private static let headSize = 65_536
    private static let pollTime: Int32 = 100

    /// The file with its lines.
    package let path: String
    /// What it is called in messages.
    package let name: String
    private let format: ListFormat
    private let source: Int32, file: Int32
    private let threads = ThreadPool(threads: 1, name: "list")
    private let state = Locked(State())

    /// Opens it, and reads until the first entry has come, or its end.
    /// * `folder`: where its lines are kept.
    /// * `waiting`: see ``ListFile/open(_:waiting:)``.
    /// - Throws: as ``ListFile/copy(_:into:waiting:)``.
    package init(
        _ path: String, into folder: String, format: ListFormat, waiting: () -> Void = {}
    ) throws(PrefetchError) {
        (name, self.format) = (ListFile.name(of: path), format)
        source = try ListFile.open(path, waiting: waiting)
        self.path = "\(folder)/\(ListFile.stem(of: path))-\(getpid())-\(UInt32.random(in: 0...UInt32.max)).txt"
        file = clinux_open(self.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        let code = errno
        guard file >= 0 else {
            close(source)
            throw PrefetchError(.inputOutput, "cannot write \(self.path): \(String(cString: strerror(code)))")
        }
        do throws(PrefetchError) { try state.withLock { state throws(PrefetchError) in try readHead(&state) } } catch {
            unlink(self.path)
            throw error
        }
    }

    deinit {
        close(source)
        close(file)
    }

    /// The list so far: without a total and a hash.
    package var list: URLList { URLList(path: path, total: 0, hash: "") }

    /// Entries so far.
    package var total: Int { state.withLock { $0.checks.total } }

    /// Hex SHA-256 of all its lines; empty before its end.
    var hash: String { state.withLock { $0.hash } }

    /// Whether it begins as one URL or object a line does, and not as something that has to be whole before it can be read.
    package var isOfLines: Bool {
        let head = state.withLock { $0.head }
        let lines = head.split(separator: 0x0A).lazy.map { $0.drop { [0xEF, 0xBB, 0xBF, 0x20, 0x09].contains($0) } }
        guard let first = lines.first(where: { URLList.isEntry(Array($0)) }) else { return false }
        if format == .plain || format == .jsonl { return true }
        let line = Array(first.last == 0x0D ? first.dropLast() : first)
        return URLList.entry(line, number: 1)?.isInvalid == false
            && (JSONLine.isOne(line) || !line.contains { [0x09, 0x2C, 0x3B].contains($0) })
    }

    package var lineOptions: WebImageOptions { state.withLock { $0.checks.lineOptions } }

    package var unknownMembers: UnknownMembers { state.withLock { $0.checks.unknownMembers } }

    /// Removes the file, where no batch has it.
    package func remove() { unlink(path) }

    /// Reads all that is left, for a list that has to be whole before it is used, and ends the file.
    package func readToEnd() throws(PrefetchError) {
        try state.withLock { state throws(PrefetchError) in
            while !state.hasEnded { try read(&state, waitLimit: -1) }
        }
    }

    /// Calls `body` with each entry from index `first` on, as it comes, until it returns false.
    /// * `waiting`: called when all that have come were given, and ten times a second while none comes; false ends it.
    /// - Throws: errors of both; `unreadableList` with a line that is none of a list; `stopped` if the task is cancelled.
    func forEach(
        from first: Int, _ body: (PrefetchJob.Entry) async throws(PrefetchError) -> Bool,
        waiting: () async throws(PrefetchError) -> Bool
    ) async throws(PrefetchError) {
        var reader = try LineReader(path: path)
        var index = 0
        while true {
            while let line = try reader.next() {
                guard let entry = URLList.entry(line, number: reader.lineNumber) else { continue }
                try check(line, number: reader.lineNumber)
                index += 1
                if index > first, try await !body(entry) { return }
            }
            guard try await waiting() else { return }
            switch try await more() {
            case .lines: reader.resume()
            case .nothing: break
            case .end: return try requireURLs()
            }
        }
    }

    private enum News {
        case lines, nothing, end
    }

    private func more() async throws(PrefetchError) -> News {
        guard !Task.isCancelled else {
            throw PrefetchError(.stopped, "stopped before the whole list was queued")
        }
        return try await threads.run { [self] () throws(PrefetchError) in
            try state.withLock { state throws(PrefetchError) in
                if state.hasEnded { return .end }
                return try read(&state, waitLimit: Self.pollTime) || state.hasEnded ? .lines : .nothing
            }
        }
    }

    private func check(_ line: [UInt8], number: Int) throws(PrefetchError) {
        let isNoList = try state.withLock { state throws(PrefetchError) in
            guard number > state.checked else { return false }
            state.checked = number
            try state.checks.add(line, number: number, format)
            return state.checks.isNoList
        }
        if isNoList { throw noList() }
    }

    private func requireURLs() throws(PrefetchError) {
        let checks = state.withLock { $0.checks }
        if checks.total > 0, !checks.hasURLs { throw noList() }
    }

    private func noList() -> PrefetchError {
        ListGuess.error(path: name, head: state.withLock { $0.head })
    }

    // MARK: Its file

    private func readHead(_ state: inout State) throws(PrefetchError) {
        var size = 0
        while !state.hasEnded, size < Self.headSize {
            try read(&state, waitLimit: -1)
            var reader = try LineReader(path: path)
            while let line = try reader.next() { if URLList.isEntry(line) { return } }
            size = state.partial.count + reader.lineOffset
        }
        // No text of lines: as much of it as has come tells what it is.
        if !state.hasEnded { try flush(&state) }
    }

    /// Reads what has come, and writes the whole lines of it.
    /// * `waitLimit`: milliseconds for which it waits for something; -1: for as long as it takes.
    /// - Returns: whether there are more lines.
    @discardableResult
    private func read(_ state: inout State, waitLimit: Int32) throws(PrefetchError) -> Bool {
        var entry = pollfd(fd: source, events: Int16(POLLIN), revents: 0)
        guard poll(&entry, 1, waitLimit) > 0 else { return false }
        var buffer = [UInt8](repeating: 0, count: 1 << 18)
        let count = buffer.withUnsafeMutableBytes { Glibc.read(source, $0.baseAddress, $0.count) }
        if count < 0 && [EINTR, EAGAIN].contains(errno) { return false }
        guard count >= 0 else {
            throw PrefetchError(.unreadableList, "cannot read \(name): \(String(cString: strerror(errno)))")
        }
        if count == 0 {
            state.hasEnded = true
            try flush(&state)
            state.hash = state.hasher.finishedHex()
            return false
        }
        let known = state.partial.count
        state.partial += buffer[..<count]
        guard let end = state.partial[known...].lastIndex(of: 0x0A) else {
            guard state.partial.count <= LineReader.longest + 1 else {
                throw PrefetchError(
                    .unreadableList, "a line of \(name) is longer than \(LineReader.longest >> 20) MiB",
                    hint: "leave columns out that nothing needs")
            }
            return false
        }
        let rest = Array(state.partial[(end + 1)...])
        state.partial.removeLast(rest.count)
        try flush(&state)
        state.partial = rest
        return true
    }

    private func flush(_ state: inout State) throws(PrefetchError) {
        let bytes = state.partial
        state.partial = []
        if state.head.count < 4_096 { state.head += bytes.prefix(4_096 - state.head.count) }
        let code = OpenFile.write(bytes, to: file)
        guard code == 0 else {
            throw PrefetchError(
                .inputOutput, "cannot keep the list from \(name) in \(path): \(String(cString: strerror(code)))",
                hint: "make room there")
        }
        bytes.withUnsafeBytes { state.hasher.update($0) }
    }
}
