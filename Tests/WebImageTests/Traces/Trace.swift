import Origin
import TestSupport
import Threading

@testable import WebImage

/// Writes down every call that SDWebImage's classes make, in order: of a manager's and a prefetcher's delegate, of closures, and of loads.
/// URLs have no address in it.
final class Trace: ImageManagerDelegate, ImagePrefetcherDelegate {
    private let lines = Locked<[String]>([])
    private let changed = Locked<[(count: Int, latch: Latch)]>([])
    private let address: String
    /// Whether the delegate lets images be downloaded.
    let downloads: Bool
    /// What it makes of each image; nil: nothing.
    let transforms: Bool

    init(_ origin: OriginServer, downloads: Bool = true, transforms: Bool = false) {
        address = origin.url("")
        self.downloads = downloads
        self.transforms = transforms
    }

    func note(_ line: String) {
        let count = lines.withLock { lines in
            lines.append(line.replacing(address, with: ""))
            return lines.count
        }
        let reached = changed.withLock { changed in
            defer { changed.removeAll { $0.count <= count } }
            return changed.filter { $0.count <= count }
        }
        for entry in reached { entry.latch.open() }
    }

    /// Returns when there are so many lines.
    func wait(for count: Int) async {
        let latch = Latch()
        changed.withLock { $0.append((count, latch)) }
        if lines.withLock({ $0.count }) >= count { latch.open() }
        await latch.wait()
    }

    var text: [String] { lines.withLock { $0 } }

    // MARK: Closures

    var progress: @Sendable (Int, Int) -> Void { { self.note("  progress \($0), \($1)") } }

    var listProgress: @Sendable (Int, Int) -> Void { { self.note("  progress \($0)/\($1)") } }

    var listCompleted: @Sendable (Int, Int) -> Void { { self.note("  completion finished \($0), skipped \($1)") } }

    func completed(_ url: String) -> @Sendable (Result<LoadedImage, WebImageError>) -> Void {
        { self.note("  completed \(url): \(Self.text($0))") }
    }

    static func text(_ result: Result<LoadedImage, WebImageError>) -> String {
        switch result {
        case .success(let image):
            "image \(image.info.width) x \(image.info.height), \(image.cacheType), \(image.outcome.name)"
        case .failure(let error):
            "error \(error.code.rawValue)\(error.httpStatus.map { ", status \($0)" } ?? "")"
        }
    }

    // MARK: Delegates

    func imageManager(_ imageManager: ImageManager, shouldDownloadImageFor url: String) -> Bool {
        note("  shouldDownloadImageForURL \(url): \(downloads ? "yes" : "no")")
        return downloads
    }

    func imageManager(
        _ imageManager: ImageManager, shouldBlockFailedURL url: String, with error: WebImageError
    ) -> Bool? {
        note("  shouldBlockFailedURL \(url) \(error.code.rawValue)")
        return nil
    }

    func imageManager(
        _ imageManager: ImageManager, transformDownloadedImage image: ImageBody, info: ImageInfo, for url: String
    ) -> ImageBody? {
        guard transforms else { return image }
        note("  transformDownloadedImage \(url) \(info.width) x \(info.height)")
        return ImageBody(GeneratedImage.png(seed: 4, width: 4, height: 4))
    }

    func imagePrefetcher(
        _ imagePrefetcher: any ImagePrefetching, didPrefetch url: String, finishedCount: Int, totalCount: Int
    ) { note("  didPrefetchURL \(url) \(finishedCount)/\(totalCount)") }

    func imagePrefetcher(
        _ imagePrefetcher: any ImagePrefetching, didFinishWithTotalCount totalCount: Int, skippedCount: Int
    ) { note("  didFinishWithTotalCount \(totalCount) skippedCount \(skippedCount)") }
}

/// Cancels a load from a call of its delegate.
final class CancellingDelegate: ImageManagerDelegate {
    enum Call {
        case question, transform
    }

    private let call: Call
    private let operation = Locked<ImageLoadOperation?>(nil)
    private let isSet = BlockingLatch()

    init(_ call: Call) { self.call = call }

    /// The load to cancel, whose call waits for it.
    func cancel(_ operation: ImageLoadOperation) {
        self.operation.withLock { $0 = operation }
        isSet.open()
    }

    private func cancel(in call: Call) {
        guard call == self.call else { return }
        isSet.wait()
        operation.withLock { $0 }?.cancel()
    }

    func imageManager(_ imageManager: ImageManager, shouldDownloadImageFor url: String) -> Bool {
        cancel(in: .question)
        return true
    }

    func imageManager(
        _ imageManager: ImageManager, transformDownloadedImage image: ImageBody, info: ImageInfo, for url: String
    ) -> ImageBody? {
        cancel(in: .transform)
        return image
    }
}
