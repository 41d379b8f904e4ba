/// An event of a download (SDWebImageDownloader's notifications), read from ``ImageDownloader/events()``.
public struct DownloadEvent: Sendable {
    /// The kinds of events.
    public enum Name: String, Sendable {
        /// The first transfer of a URL starts (SDWebImageDownloadStartNotification).
        case start
        /// The header of a response arrived, except for redirects (SDWebImageDownloadReceiveResponseNotification).
        case response
        /// Bytes of a body arrived; only for downloads with `progressive`, limited by `minimumProgressInterval`.
        case progress
        /// A started download has ended, successfully or not (SDWebImageDownloadStopNotification).
        case stop
        /// It ended with a body; follows `stop` (SDWebImageDownloadFinishNotification).
        case finish
    }

    /// The kind of event.
    public var name: Name
    /// The URL as requested.
    public var url: String
    /// Seconds since 1970.
    public var time: Double
    /// Tries started.
    public var tries: Int
    /// For `response` and `finish`, and for a `stop` due to a status.
    public var statusCode: Int?
    /// Bytes of the body so far.
    public var receivedBytes: Int
    /// Length of the body, if announced.
    public var expectedBytes: Int?
    /// Timing of the last hop, for `stop` and `finish`; nil if it ended without a transfer.
    public var timing: DownloadedImage.Timing?
    /// `1.1`, `2`; nil without a response.
    public var httpVersion: String?
    /// For `stop`: why there is no body.
    public var error: WebImageError?
}
