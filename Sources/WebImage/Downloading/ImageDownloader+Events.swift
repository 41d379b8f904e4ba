extension ImageDownloader {
    /// What happens to all downloads from now on: SDWebImageDownloader's notifications, as a stream of its own for each caller.
    ///
    /// It ends with the downloader's session. Who reads too slowly loses the oldest of more than 65,536 events.
    public nonisolated func events() -> AsyncStream<DownloadEvent> { listeners.add() }

    /// Keeps what a `stop` says of the last transfer, before its handle serves another.
    func noteEnd(of operation: DownloadOperation, on handle: CurlHandle) {
        guard !listeners.isEmpty else { return }
        operation.ending = DownloadOperation.Ending(
            timing: handle.timing, status: handle.status, httpVersion: handle.status > 0 ? handle.httpVersion : nil)
    }

    func tellEnd(of operation: DownloadOperation, _ result: Result<DownloadedImage, WebImageError>) {
        guard operation.hasBegun, !listeners.isEmpty else { return }
        func fill(_ event: inout DownloadEvent) {
            event.timing = operation.ending?.timing
            event.statusCode = operation.ending.flatMap { $0.status > 0 ? $0.status : nil }
            event.httpVersion = operation.ending?.httpVersion
            if case .failure(let error) = result { event.error = error }
        }
        listeners.tell(.stop, of: operation, fill)
        if case .success = result { listeners.tell(.finish, of: operation, fill) }
    }

    /// Gives an operation somebody to tell, where its callers or the listeners want to hear of it.
    func observe(_ operation: DownloadOperation) {
        guard operation.observer == nil, operation.waiters.contains(where: { $0.progress != nil }) || !listeners.isEmpty
        else { return }
        operation.observer = DownloadObserver(
            interval: configuration.minimumProgressInterval, listeners: listeners)
    }
}

extension DownloadOperation {
    /// What is told of the last transfer when the download has ended.
    struct Ending {
        var timing: DownloadedImage.Timing
        var status: Int
        var httpVersion: String?
    }
}
