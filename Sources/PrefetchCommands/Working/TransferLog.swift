internal import Glibc
internal import Prefetch
internal import Threading
internal import WebImage

/// Writes the events of a worker's transfers to a private JSON-lines file. Workers may share it: a line is one appending write(2).
final class TransferLog: Sendable {
    private let file: Int32
    /// A stalled disk must not block others.
    private let threads = ThreadPool(threads: 1, name: "transfer-log")

    /// - Throws: `inputOutput` if the file cannot be opened.
    init(path: String) throws(PrefetchError) {
        file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard file >= 0 else {
            throw PrefetchError(
                .inputOutput, "cannot write \(path): \(String(cString: strerror(errno)))",
                hint: "choose a file that this user may write: --transfer-log FILE")
        }
        // An existing file may have been readable by others. A pipe or a terminal stays as it is.
        var status = stat()
        if fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG { fchmod(file, 0o600) }
    }

    deinit { close(file) }

    /// Writes every event until the downloader's session is over. A line that cannot be written is dropped: the images matter more.
    func write(_ events: AsyncStream<DownloadEvent>) async {
        for await event in events {
            await threads.run { [file] in
                let line = Array((Self.object(event).text + "\n").utf8)
                _ = Glibc.write(file, line, line.count)
            }
        }
    }

    /// `{"event":"finish","url":…,"time":…,…}`
    static func object(_ event: DownloadEvent) -> JSONText {
        var members: [(String, JSONText)] = [
            ("event", .string(event.name.rawValue)), ("url", .url(event.url)), ("time", .number(event.time)),
            ("tries", .int(event.tries)), ("received", .int(event.receivedBytes)),
        ]
        if let expected = event.expectedBytes { members.append(("expected", .int(expected))) }
        if let status = event.statusCode { members.append(("http_status", .int(status))) }
        if let version = event.httpVersion { members.append(("http_version", .string(version))) }
        if let timing = event.timing {
            func milliseconds(_ seconds: Double) -> JSONText { .number(seconds * 1000) }
            members.append(
                (
                    "milliseconds",
                    .object([
                        ("dns", milliseconds(timing.nameLookup)), ("connect", milliseconds(timing.connect)),
                        ("tls", milliseconds(timing.tls)), ("first_byte", milliseconds(timing.firstByte)),
                        ("total", milliseconds(timing.total)),
                    ])
                ))
            members.append(("reused", .bool(timing.reusedConnection)))
        }
        if let error = event.error {
            members.append(("error", .sentence(error.message)))
            members.append(("outcome", error.outcome.map { .string($0.name) } ?? .null))
        }
        return .object(members)
    }
}
