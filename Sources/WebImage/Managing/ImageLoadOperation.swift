internal import Threading

/// One load under way (SDWebImageCombinedOperation): what cancels it, whether it is at the cache, before the transfer or in it.
public final class ImageLoadOperation: Sendable {
    /// The URL, byte for byte as it was given.
    public let url: String
    private let task: Task<Result<LoadedImage, WebImageError>, Never>

    init(url: String, task: Task<Result<LoadedImage, WebImageError>, Never>) {
        self.url = url
        self.task = task
    }

    /// Ends the load with `cancelled`, unless it is over. Others who wait for the same image go on.
    public func cancel() { task.cancel() }

    /// Whether ``cancel()`` was called.
    public var isCancelled: Bool { task.isCancelled }

    /// The image, once it is there. A task that is cancelled here does not cancel the load.
    /// - Throws: why there is none.
    public var image: LoadedImage {
        get async throws(WebImageError) { try await task.value.get() }
    }
}

extension ImageManager {
    /// Starts a load and returns at once (`loadImageWithURL:options:progress:completed:`).
    /// - Parameters:
    ///   - url: as for ``loadImage(with:options:)``.
    ///   - options: likewise.
    ///   - progress: told of the bytes of a download.
    ///   - completed: called once, with `cancelled` where it was cancelled.
    /// - Returns: what cancels it. It goes on when nobody keeps it.
    @discardableResult
    public func startLoad(
        with url: String, options: WebImageOptions = [],
        progress: (@Sendable (_ receivedBytes: Int, _ expectedBytes: Int) -> Void)? = nil,
        completed: (@Sendable (Result<LoadedImage, WebImageError>) -> Void)? = nil
    ) -> ImageLoadOperation {
        let task = Task<Result<LoadedImage, WebImageError>, Never> {
            let result: Result<LoadedImage, WebImageError>
            do throws(WebImageError) {
                result = .success(try await loadImage(with: url, options: options, progress: progress))
            } catch {
                result = .failure(error)
            }
            completed?(result)
            return result
        }
        return ImageLoadOperation(url: url, task: task)
    }
}
