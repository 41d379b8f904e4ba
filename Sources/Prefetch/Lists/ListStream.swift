internal import CLinux
internal import Glibc
internal import Threading
internal import WebImage

/// A list that is read for the first time: its URLs are queued while it is read. Its beginning is read and checked at once; a shorter
/// list is whole then.
///
/// A file of lines is read where it is. The lines of anything else, a pipe, a table, several files, are written into a file first, so that they
/// can be read again.
package final class ListStream: Sendable {
    /// What was read of it.
    package struct Reading: Sendable {
        /// Entries, good and bad.
        package var total: Int
        /// Lines, with and without an entry.
        package var lines: Int
        /// The union of options of single lines.
        package var lineOptions: WebImageOptions
        /// The files that were read to their end.
        package var parts: [Part]
        /// Whether all were.
        var hasEnded: Bool
    }

    /// A file of the list that was read to its end.
    package struct Part: Sendable {
        package var name: String
        /// Entries, good and bad.
        package var total: Int
        package var unknownMembers: UnknownMembers
        /// Names of columns that nothing uses.
        package var unused: [String]
    }

    private struct State {
        /// Nil of a file of lines, and after the end.
        var input: ListInput?
        /// Lines that were read before there was a file for them.
        var pending: [UInt8] = []
        var lines: OpenedList?
        var path = ""
        /// Bytes of all lines so far.
        var size = 0
        /// The byte behind the last line that was looked at.
        var offset = 0
        var share: Double?
        var hasEnded = false
        var isCopied = false
        /// Whether a batch has it.
        var isOfBatch = false
        /// Where it is kept; nil: nowhere.
        var folder: String?
        /// Bytes of the largest list that is copied.
        var copyMost = ListCopy.usualMost
        /// Entries of a part of a larger one.
        var partSize = ListSums.usualSize
        var digest = ListDigest()
        var checks: ListStreamChecks
    }

    /// Bytes of the beginning.
    private static let usualHeadSize = 1 << 20
    private static let pollTime: Int32 = 100
    /// Milliseconds after the first URLs of a pipe in which it may end to be whole.
    private static let shortest: Int32 = 50

    /// The files that were given.
    private let files: [String]
    /// What it is called in messages.
    package let name: String
    /// The beginning of batch ids.
    private let stem: String
    /// Whether it is a file of lines that is read where it is.
    package let isPlain: Bool
    /// Whether nothing was left behind its beginning: its total is known.
    package let isWhole: Bool
    /// SHA-256 of its beginning, and the bytes of that.
    private let head: (hash: String, size: Int)
    private let limit: Int?
    private let threads = ThreadPool(threads: 1, name: "list")
    private let state: Locked<State>

    /// Opens the files, and reads the beginning; of a pipe only what has come with the first URL.
    /// * `files`: at least one.
    /// * `fetcher`: what makes files of addresses; then this blocks, and must not be called on a thread of the cooperative pool.
    /// * `limit`: the list ends behind so many entries.
    /// * `headSize`: bytes of the beginning.
    /// * `notice`: called with what is to be said of it.
    /// - Throws: `notFound`; `unreadableList` if it has no URL, or a line of another format.
    package init(
        _ files: [String], options: ListInput.Options = ListInput.Options(), fetcher: (any ListOpening)? = nil,
        limit: Int? = nil, headSize: Int? = nil,
        notice: @escaping @Sendable (ListInput.Notice) -> Void = { _ in }
    ) throws(PrefetchError) {
        let headSize = headSize ?? Self.usualHeadSize
        let input = try ListInput(files, options: options, fetcher: fetcher, notice: notice)
        let first = ListFile.name(of: files[0])
        name = files.count == 1 ? first : "\(first) and \(files.count - 1) more list\(files.count == 2 ? "" : "s")"
        (self.files, self.limit, stem) = (files, limit, ListFile.stem(of: files[0]))
        isPlain = input.isPlain
        var state = State(checks: ListStreamChecks(options.format, input.beginnings))
        if isPlain {
            let lines = input.lines
            (state.lines, state.path, state.size) = (lines, files[0], lines.mark?.size ?? 0)
        } else {
            (state.input, state.share) = (input, input.share)
            try Self.readHead(&state, headSize, isStream: files.contains(where: ListFile.isStream))
        }
        isWhole = try Self.checkHead(&state, headSize, limit)
        if isWhole { try state.checks.finish(isCut: state.checks.total == limit) }
        let hash = isPlain ? state.lines?.digest(upTo: state.offset) : SHA256.hash(state.pending).hex
        head = (hash ?? "", state.offset)
        self.state = Locked(state)
    }

    private static func readHead(
        _ state: inout State, _ headSize: Int, isStream: Bool
    ) throws(PrefetchError) {
        var hasEntry = false
        while !state.hasEnded, state.pending.count < headSize {
            let known = state.pending.count
            try read(&state, waitLimit: isStream && hasEntry ? shortest : -1)
            if state.pending.count == known, isStream, hasEntry { break }
            var reader = LineReader(Array(state.pending[known...]), called: "")
            while !hasEntry, let line = try reader.next() { hasEntry = URLList.isEntry(line) }
        }
        state.size = state.pending.count
    }

    /// Returns whether it has no more lines.
    private static func checkHead(
        _ state: inout State, _ headSize: Int, _ limit: Int?
    ) throws(PrefetchError) -> Bool {
        let name = state.checks.name
        var reader =
            if let lines = state.lines { LineReader(lines, called: name) } else {
                LineReader(state.pending, called: name)
            }
        while reader.offset < headSize, let line = try reader.next() {
            state.offset = reader.offset
            _ = try state.checks.add(line, number: reader.lineNumber)
            guard state.checks.total == limit else { continue }
            (state.input, state.hasEnded) = (nil, true)
            if state.lines == nil {
                state.pending.removeLast(state.pending.count - reader.offset)
                state.size = reader.offset
            }
            return true
        }
        return state.lines == nil ? state.hasEnded : reader.offset >= state.size
    }

    /// How far it may be queued.
    package let limits = FeedLimit()

    /// What was read so far.
    package var reading: Reading { state.withLock { $0.checks.reading } }

    /// Reads its entries again; nil before it is kept.
    func entries() -> EntryReader? { state.withLock { $0.lines }.map { EntryReader($0, called: name) } }

    /// How many entries it will have, as far as its length tells; nil of a pipe.
    var estimate: Int? {
        state.withLock { state in
            guard !isWhole, state.offset > 0, state.size > 0, state.checks.total > 0 else { return nil }
            let read = Double(state.offset) / Double(state.size)
            guard let share = isPlain ? read : state.share.map({ read * $0 }), share > 0 else { return nil }
            return min(limit ?? .max, max(state.checks.total, Int(Double(state.checks.total) / share)))
        }
    }

    /// The list so far, for its batch.
    package var list: URLList {
        state.withLock { state in
            var list = URLList(path: state.path, total: isWhole ? state.checks.total : 0, hash: head.hash)
            (list.bytes, list.isWhole, list.lines, list.head) = (head.size, isWhole, state.checks.lines, head.hash)
            list.stem = stem
            list.mark = isPlain ? state.lines?.mark : nil
            list.copies = state.folder
            list.sources = isPlain ? [] : Self.sources(files)
            return list
        }
    }

    private static func sources(_ files: [String]) -> [String] {
        files.map { file in
            if ListFile.isStream(file) { return ListFile.streamName(file) }
            return PathText.resolved(file) ?? (file.contains("://") ? ListFile.name(of: file) : file)
        }
    }

    // MARK: Where it is kept

    /// Makes room in a folder for what is kept of it.
    /// * `copyMost`: bytes of the largest list that is copied; of a larger file there are digests of its parts.
    /// - Throws: `inputOutput` if that cannot be written.
    /// * `partSize`: entries of such a part.
    package func keep(
        in folder: String, copyMost: Int = ListCopy.usualMost, partSize: Int? = nil
    ) throws(PrefetchError) {
        try state.withLock { state throws(PrefetchError) in
            (state.copyMost, state.partSize) = (copyMost, partSize ?? state.partSize)
            if isPlain {
                let path = PathText.resolved(state.path) ?? state.path
                state.folder = path.hasPrefix(folder + "/") ? nil : folder
                return
            }
            let path = ListCopy.newLines(in: folder)
            let file = PathText.withBytes(path) {
                clinux_open($0, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
            }
            guard file >= 0 else {
                throw PrefetchError(
                    .inputOutput, "cannot keep the list from \(name) in \(folder): \(String(cString: strerror(errno)))",
                    hint: "make room there, or choose another folder: --state DIR")
            }
            (state.lines, state.path, state.folder) = (OpenedList(file), path, folder)
            do throws(PrefetchError) { try write(state.pending, &state) } catch {
                unlink(path)
                throw error
            }
            state.pending = []
        }
    }

    /// A batch has it now: the file with its lines stays when this object goes.
    package func leaveToBatch() { state.withLock { $0.isOfBatch = true } }

    deinit { state.withLock { state in if !isPlain, !state.isOfBatch, !state.path.isEmpty { unlink(state.path) } } }

    private func write(_ bytes: [UInt8], _ state: inout State) throws(PrefetchError) {
        guard let lines = state.lines else { return }
        let code = OpenFile.write(bytes, to: lines.descriptor)
        guard code == 0 else {
            throw PrefetchError(
                .inputOutput, "cannot keep the list from \(name) in \(state.path): \(String(cString: strerror(code)))",
                hint: "make room there")
        }
    }

    // MARK: Reading

    /// Calls `body` with each entry from index `first` on, and the byte behind its line, as it comes, until it returns false.
    /// * `copies`: whether its copy is made; its entries are without columns then, which jobs have none of.
    /// * `waiting`: called when all that have come were given, and ten times a second while none comes; false ends it.
    /// - Throws: errors of both; `unreadableList` with a line that is none of a list; `stopped` if the task is cancelled.
    func forEach(
        from first: Int = 0, copies: Bool = false,
        _ body: (PrefetchJob.Entry, Int) async throws(PrefetchError) -> Bool,
        waiting: () async throws(PrefetchError) -> Bool = { () async throws(PrefetchError) in true }
    ) async throws(PrefetchError) {
        let (lines, folder, copyMost, partSize, size) = state.withLock { state in
            state.digest = ListDigest()
            return (state.lines, copies ? state.folder : nil, state.copyMost, state.partSize, state.size)
        }
        guard let lines else { return }
        var reader = LineReader(lines, called: name)
        // What is no file of lines has a file of its own, which stays where there is no copy.
        let isTooLarge = isPlain && size > copyMost
        let writer = isTooLarge && limit == nil ? nil : folder.flatMap { ListCopy.Writer(in: $0, most: copyMost) }
        var sums = isTooLarge && folder != nil ? ListSums.Maker(of: lines, size: partSize) : nil
        reader.observe = { [state] bytes, range in
            state.withLock { $0.digest.add(bytes[range]) }
            bytes.withUnsafeBytes { writer?.write(UnsafeRawBufferPointer(rebasing: $0[range])) }
        }
        var index = 0
        while true {
            while index != limit, let line = try reader.next() {
                let (number, offset) = (reader.lineNumber, reader.offset)
                sums?.add(line, number: number, end: offset)
                let look = try state.withLock { state throws(PrefetchError) in
                    state.offset = max(state.offset, offset)
                    return try state.checks.add(line, number: number)
                }
                if case .none = look { continue }
                index += 1
                var object: JSONLine?
                if case .entry(let found) = look { object = found }
                guard index > first, let entry = URLList.entry(line, number: number, object, columns: !copies)
                else { continue }
                if try await !body(entry, offset) { return }
            }
            if index == limit || isPlain { break }
            var news = try await more(waitLimit: 0)
            while news == .nothing {
                guard try await waiting() else { return }
                news = try await more(waitLimit: Self.pollTime)
            }
            if news == .end { break }
            reader.resume()
        }
        try state.withLock { state throws(PrefetchError) in try state.checks.finish(isCut: index == limit) }
        guard let (offset, hash) = digest() else { return }
        if writer?.finish(hash) == true {
            state.withLock { $0.isCopied = true }
        } else if let folder {
            sums?.finish(offset).keep(hash, in: folder)
        }
    }

    /// The batch is sealed: its copy has the lines.
    func finish() { state.withLock { state in if state.isCopied, !isPlain { unlink(state.path) } } }

    /// Bytes of the lines up to one that ``forEach(from:_:waiting:)`` has given, and their SHA-256; nil: up to the last line that was read.
    func digest(upTo end: Int? = nil) -> (length: Int, hash: String)? {
        state.withLock { state in
            let end = end ?? state.offset
            return state.digest.hex(upTo: end).map { (end, $0) }
        }
    }

    private enum News {
        case lines, nothing, end
    }

    private func more(waitLimit: Int32) async throws(PrefetchError) -> News {
        guard !Task.isCancelled else {
            throw PrefetchError(.stopped, "stopped before the whole list was queued")
        }
        return try await threads.run { [self] () throws(PrefetchError) in
            try state.withLock { state throws(PrefetchError) in try pull(&state, waitLimit: waitLimit) }
        }
    }

    /// Reads more of its lines, and writes them.
    private func pull(_ state: inout State, waitLimit: Int32) throws(PrefetchError) -> News {
        guard !state.hasEnded else { return .end }
        try Self.read(&state, waitLimit: waitLimit)
        guard !state.pending.isEmpty else { return state.hasEnded ? .end : .nothing }
        try write(state.pending, &state)
        state.size += state.pending.count
        state.pending = []
        return .lines
    }

    /// Reads more lines of what is no file of lines.
    private static func read(_ state: inout State, waitLimit: Int32) throws(PrefetchError) {
        guard let input = state.input else { return state.hasEnded = true }
        switch try input.next(waitLimit: waitLimit) {
        case .lines(let lines): state.pending += lines
        case .nothing: break
        case .end:
            state.hasEnded = true
            state.input = nil
        }
        state.share = input.share
        state.checks.beginnings = input.beginnings
    }
}

// MARK: - A batch that has it already

extension ListStream {
    /// What an unfinished batch has of a list.
    package enum Continuation: Sendable {
        /// The list, as far as it was queued.
        case same
        /// All of what the list was when its batch was made or sealed; there is more of it now.
        case grown
        /// Another list.
        case different
    }

    /// Compares it with the list of a batch, as far as that was queued.
    /// - Throws: what reading it throws.
    package func continuation(of status: BatchStatus) throws(PrefetchError) -> Continuation {
        guard status.listBytes > 0 || status.total == 0 else { return .different }
        if let limit, status.pushed > limit { return .different }
        let isComplete = status.total == limit
        return try state.withLock { state throws(PrefetchError) in
            guard try hasBytes(of: status, &state) else { return .different }
            guard !status.isOpen, !isComplete else { return .same }
            while !isPlain, state.size == status.listBytes, try pull(&state, waitLimit: -1) != .end {}
            return state.size > status.listBytes ? .grown : .same
        }
    }

    private func hasBytes(of status: BatchStatus, _ state: inout State) throws(PrefetchError) -> Bool {
        guard let lines = state.lines else { return false }
        if isPlain {
            if let mark = lines.mark, mark == FileMark(status.listMark) { return true }
            return lines.digest(upTo: status.listBytes) == status.listHash
        }
        guard status.sources == Self.sources(files), let folder = state.folder, folder == status.listCopies,
            let path = ListCopy.isLines(status.listPath, in: folder)
                ? status.listPath : ListCopy(of: status.listHash, in: folder)?.unpacked(status.listBytes),
            let file = try? ListFile.open(path)
        else { return false }
        let kept = OpenedList(file)
        var compared = 0
        while compared < status.listBytes {
            let end = min(state.size, status.listBytes)
            guard lines.hasBytes(of: kept, compared..<end) else { return false }
            compared = end
            if compared < status.listBytes, try pull(&state, waitLimit: -1) == .end { return false }
        }
        return true
    }

    /// Goes on as the list of a batch: what is kept of it is that of the batch.
    /// * `isFed`: whether nothing of it is queued any more.
    package func join(_ status: BatchStatus, isFed: Bool) {
        state.withLock { state in
            if isPlain {
                state.folder = status.listCopies.isEmpty ? nil : status.listCopies
            } else if !isFed, rename(state.path, status.listPath) == 0 {
                (state.path, state.isOfBatch) = (status.listPath, true)
            }
        }
    }
}
