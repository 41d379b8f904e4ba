import Glibc

@testable import Prefetch
@testable import Queue

extension FuzzTarget {
    /// A file on this machine that has the bytes of one input after the other.
    private static let file: (path: String, descriptor: Int32) = {
        // In memory where that is possible: a disk's file system writes out what was truncated when the reader closes it.
        let folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : ListFile.temporaryFolder
        var name = Array("\(folder)/prefetch-fuzz-XXXXXX".utf8CString)
        let descriptor = mkstemp(&name)
        atexit { unlink(FuzzTarget.file.path) }
        return (String(decoding: name.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self), descriptor)
    }()

    private static func options(_ choice: UInt8) -> ListInput.Options {
        var options = ListInput.Options()
        options.format = ListFormat.allCases[Int(choice & 7) % ListFormat.allCases.count]
        if choice & 8 != 0 { options.keepColumns = ["alt", "id"] }
        if choice & 16 != 0 { options.urlColumn = "2" }
        if choice & 32 != 0 { options.sha256Column = "sha256" }
        return options
    }

    /// The first byte chooses format and options, the others are the file.
    static func readList(_ input: [UInt8]) throws {
        guard let choice = input.first else { return }
        let bytes = Array(input.dropFirst())
        // DuckDB reads these.
        guard !bytes.starts(with: "PAR1".utf8) else { return }
        ftruncate(file.descriptor, 0)
        guard pwrite(file.descriptor, bytes, bytes.count, 0) == bytes.count else { return }
        let options = options(choice)
        var all: [UInt8] = []
        do throws(PrefetchError) {
            let list = try ListInput([file.path], options: options) { _ in }
            if list.isPlain {
                all = bytes
            } else {
                while true {
                    guard case .lines(let lines) = try list.next(waitLimit: -1) else { break }
                    all += lines
                }
            }
        } catch {
            return try claim(!error.message.isEmpty, "an error without a message")
        }
        try readLines(all, options.format)
    }

    private static func readLines(_ bytes: [UInt8], _ format: ListFormat) throws {
        var reader = LineReader(bytes, called: "list")
        var checks = ListChecks()
        var entries: [PrefetchJob.Entry] = []
        do throws(PrefetchError) {
            while let line = try reader.next() {
                guard URLList.isEntry(line) else { continue }
                let object = try checks.add(line, number: reader.lineNumber, format == .jsonl ? .jsonl : .auto)
                if let entry = URLList.entry(line, number: reader.lineNumber, object) { entries.append(entry) }
            }
        } catch {
            return try claim(!error.message.isEmpty, "an error without a message")
        }
        for entry in entries {
            let url = Array(entry.url.utf8)
            try claim(!url.contains { $0 < 0x20 || $0 == 0x7F }, "an entry with a control character: \(url)")
            try claim(url.count <= URLList.longestURL, "an entry of \(url.count) bytes")
            guard let settings = entry.settings else { continue }
            try claim(URLSettings(text: settings.text) == settings, "settings that are not read back: \(settings.text)")
        }
        // What a list has, a worker gets.
        let sent = Array(entries.prefix(PrefetchJob.maxCount)).map { entry in
            PrefetchJob.Entry(line: entry.line, url: entry.url, isInvalid: entry.isInvalid, settings: entry.settings)
        }
        guard !sent.isEmpty, sent.reduce(0, { $0 + $1.byteCount }) <= PrefetchJob.maxBytes else { return }
        let job = PrefetchJob(batch: "b", base: 0, entries: sent)
        guard let taken = PrefetchJob(job.encoded()) else {
            throw Contradiction(description: "a job that is not read back")
        }
        try compare(taken, job)
    }

    /// By their bytes: equal texts may have others.
    private static func compare(_ one: PrefetchJob, _ other: PrefetchJob) throws {
        try claim(one.entries.count == other.entries.count, "another number of entries")
        for (one, other) in zip(one.entries, other.entries) {
            try claim(
                one.url.utf8.elementsEqual(other.url.utf8),
                "another URL: \(Array(one.url.utf8)), \(Array(other.url.utf8))")
            try claim(one.line == other.line && one.isInvalid == other.isInvalid, "another line")
            try claim(
                (one.settings?.text ?? "").utf8.elementsEqual((other.settings?.text ?? "").utf8), "other settings")
        }
    }

    /// With an even first byte a payload as it is, else a body under a head that is right.
    static func readJob(_ input: [UInt8]) throws {
        guard let choice = input.first else { return }
        var payload = Array(input.dropFirst())
        if choice & 1 != 0 {
            let count = max(1, min(payload.count { $0 == 0x0A }, PrefetchJob.maxCount))
            payload =
                Array("prefetch-job \(choice & 2 == 0 ? 1 : 2) b:7:\(count) \(CRC32.hex(of: payload))\n".utf8) + payload
        }
        _ = PrefetchJob.excerpt(of: payload)
        guard let job = PrefetchJob(payload) else { return }
        let size = job.entries.reduce(0) { $0 + $1.byteCount }
        try claim(size <= PrefetchJob.maxBytes, "a job of \(size) bytes")
        try claim((1...PrefetchJob.maxCount).contains(job.entries.count), "a job of \(job.entries.count)")
        try claim(job.split(into: 3).reduce(0) { $0 + $1.entries.count } == job.entries.count, "a part is lost")
        let parts = job.isolating([0, Int(choice)])
        try claim(parts.reduce(0) { $0 + $1.job.entries.count } == job.entries.count, "an isolated part is lost")
        var tally = HostTally()
        tally.add(job.entries.indices.map { SettledEntry(position: $0, outcome: .timeout) }, of: job)
        // What can be in a line of a payload comes back; a TAB or line end in a URL can be in none.
        guard let again = PrefetchJob(job.encoded()) else {
            throw Contradiction(description: "a job that is not read back")
        }
        try compare(again, job)
    }
}
