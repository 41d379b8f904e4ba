import Threading
import WebImage

/// Writes down what a manager asks, and answers by a script.
final class RecordingDelegate: ImageManagerDelegate {
    private let lines = Locked<[String]>([])
    private let downloads: Bool
    private let blocks: Bool?

    init(downloads: Bool = true, blocks: Bool? = nil) {
        self.downloads = downloads
        self.blocks = blocks
    }

    var asked: [String] { lines.withLock { $0 } }

    func imageManager(_ imageManager: ImageManager, shouldDownloadImageFor url: String) -> Bool {
        lines.withLock { $0.append("download \(url)") }
        return downloads
    }

    func imageManager(
        _ imageManager: ImageManager, shouldBlockFailedURL url: String, with error: WebImageError
    ) -> Bool? {
        lines.withLock { $0.append("block \(url) \(error.code.rawValue)") }
        return blocks
    }
}
