/// Reports a running download to its callers and listeners; only created if there are any. Used only on the downloader's thread.
final class DownloadObserver {
    private let interval: Double
    private let listeners: DownloadListeners
    private var lastReported = 0

    init(interval: Double, listeners: DownloadListeners) {
        self.interval = interval
        self.listeners = listeners
    }

    /// * `isWanted`: whether its body is the image: an error and a 304 are no progress (SDWebImageDownloaderOperation).
    func didReceiveResponse(
        _ operation: DownloadOperation, _ status: Int, isWanted: Bool, received: Int, expected: Int?
    ) {
        lastReported = 0
        if isWanted {
            for waiter in operation.waiters { waiter.progress?(0, expected ?? 0) }
        }
        listeners.tell(.response, of: operation, received: received, expected: expected) { $0.statusCode = status }
    }

    func didReceiveBytes(_ operation: DownloadOperation, _ received: Int, of expected: Int?) {
        if interval > 0, let expected, received < expected,
            Double(received - lastReported) < interval * Double(expected)
        {
            return
        }
        lastReported = received
        for waiter in operation.waiters { waiter.progress?(received, expected ?? 0) }
        if operation.key.options.contains(.progressive) {
            listeners.tell(.progress, of: operation, received: received, expected: expected)
        }
    }
}
