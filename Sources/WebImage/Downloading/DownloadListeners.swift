internal import Threading

/// The readers of a downloader's events. Without readers an event costs one check.
final class DownloadListeners: Sendable {
    private struct State {
        var next = 0
        var streams: [Int: AsyncStream<DownloadEvent>.Continuation] = [:]
    }

    private let state = Locked(State())

    var isEmpty: Bool { state.withLock { $0.streams.isEmpty } }

    func add() -> AsyncStream<DownloadEvent> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: DownloadEvent.self, bufferingPolicy: .bufferingNewest(65_536))
        let id = state.withLock { state in
            state.next += 1
            state.streams[state.next] = continuation
            return state.next
        }
        continuation.onTermination = { [weak self] _ in
            self?.state.withLock { $0.streams[id] = nil }
        }
        return stream
    }

    func finish() {
        // Outside the lock: the termination handler takes it.
        let streams = state.withLock { Array($0.streams.values) }
        for stream in streams { stream.finish() }
    }

    /// Publishes an event of a download.
    /// * `received`: bytes of the current body, out of `expected`.
    func tell(
        _ name: DownloadEvent.Name, of operation: DownloadOperation, received: Int, expected: Int?,
        _ change: (inout DownloadEvent) -> Void = { _ in }
    ) {
        let streams = state.withLock { $0.streams.isEmpty ? [] : Array($0.streams.values) }
        guard !streams.isEmpty else { return }
        var event = DownloadEvent(
            name: name, url: operation.key.url, time: WallClock.now,
            tries: operation.tries, receivedBytes: received, expectedBytes: expected)
        change(&event)
        for stream in streams { stream.yield(event) }
    }

    func publishEnd(of operation: DownloadOperation, _ result: Result<DownloadedImage, WebImageError>) {
        guard operation.hasBegun, !isEmpty else { return }
        func fill(_ event: inout DownloadEvent) {
            event.timing = operation.ending?.timing
            event.statusCode = operation.ending.flatMap { $0.status > 0 ? $0.status : nil }
            event.httpVersion = operation.ending?.httpVersion
            if case .failure(let error) = result { event.error = error }
        }
        let (received, expected) = (operation.received, operation.expected)
        tell(.stop, of: operation, received: received, expected: expected, fill)
        if case .success = result { tell(.finish, of: operation, received: received, expected: expected, fill) }
    }
}
