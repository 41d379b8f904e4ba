/// What happens to a download (SDWebImageDownloader's notifications), for whoever reads ``ImageDownloader/events()``.
public struct DownloadEvent: Sendable {
    /// Which of the notifications it is.
    public enum Name: String, Sendable {
        /// The first transfer of a URL begins (SDWebImageDownloadStartNotification).
        case start
        /// The header of a response came, redirects left out (SDWebImageDownloadReceiveResponseNotification).
        case response
        /// Bytes of a body came; only of downloads with `progressive`, and not more often than `minimumProgressInterval` says.
        case progress
        /// A download that was started has ended, well or badly (SDWebImageDownloadStopNotification).
        case stop
        /// It has ended with a body, after its `stop` (SDWebImageDownloadFinishNotification).
        case finish
    }

    /// Which it is.
    public var name: Name
    /// As it was asked for.
    public var url: String
    /// Seconds since 1970.
    public var time: Double
    /// Tries begun.
    public var attempts: Int
    /// Of `response` and `finish`, and of a `stop` by a status.
    public var statusCode: Int?
    /// Bytes of the body so far.
    public var receivedBytes: Int
    /// Bytes of the whole body, where the server has announced them.
    public var expectedBytes: Int?
    /// Where the time of the last hop went, of `stop` and `finish`; nil where there was no transfer at the end.
    public var timing: DownloadedImage.Timing?
    /// `1.1`, `2`; nil where there is no response.
    public var httpVersion: String?
    /// Why there is no body, of a `stop`.
    public var error: WebImageError?
}
