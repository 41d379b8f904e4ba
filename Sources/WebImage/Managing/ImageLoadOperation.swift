internal import Threading

/// A running load (SDWebImageCombinedOperation), cancellable in every phase.
public final class ImageLoadOperation: Sendable {
    /// The URL as given, byte for byte.
    public let url: String
    private let task: Task<Result<LoadedImage, WebImageError>, Never>

    init(url: String, task: Task<Result<LoadedImage, WebImageError>, Never>) {
        self.url = url
        self.task = task
    }

    /// Ends the load with `cancelled`, unless it has ended. Other loads of the same image continue.
    public func cancel() { task.cancel() }

    /// Whether ``cancel()`` was called.
    public var isCancelled: Bool { task.isCancelled }

    /// The image, when it is loaded. Cancelling the awaiting task does not cancel the load.
    /// - Throws: why the load failed.
    public var image: LoadedImage {
        get async throws(WebImageError) { try await task.value.get() }
    }
}

extension ImageManager {
    /// Starts a load and returns immediately (`loadImageWithURL:options:progress:completed:`).
    /// - Parameters:
    ///   - url: as for ``loadImage(with:options:)``.
    ///   - options: as for ``loadImage(with:options:)``.
    ///   - progress: receives the progress of a download.
    ///   - completed: called once, with `cancelled` if the load was cancelled (not with ``Compatibility/sd3``). With `refreshCached` and a cached image it is called with that
    ///     image first, and again with the new image or the failure of its request; after a 304 it is not called again.
    /// - Returns: the operation, for cancelling. The load continues if it is discarded.
    @discardableResult
    public func startLoad(
        with url: String, options: WebImageOptions = [],
        progress: (@Sendable (_ receivedBytes: Int, _ expectedBytes: Int) -> Void)? = nil,
        completed: (@Sendable (Result<LoadedImage, WebImageError>) -> Void)? = nil
    ) -> ImageLoadOperation {
        startLoad(ImageRequest(url, options: options), progress: progress, completed: completed)
    }

    /// Starts a load with settings of its own and returns immediately, as ``startLoad(with:options:progress:completed:)``.
    @discardableResult
    public func startLoad(
        _ image: ImageRequest,
        progress: (@Sendable (_ receivedBytes: Int, _ expectedBytes: Int) -> Void)? = nil,
        completed: (@Sendable (Result<LoadedImage, WebImageError>) -> Void)? = nil
    ) -> ImageLoadOperation {
        let task = Task<Result<LoadedImage, WebImageError>, Never> {
            let result: Result<LoadedImage, WebImageError>
            do throws(WebImageError) {
                let loaded = try await loadImage(image, progress: progress) { cached in
                    if !Task.isCancelled { completed?(.success(cached)) }
                }
                // Since the load has ended.
                if Task.isCancelled { throw WebImageError.downloadCancelled }
                result = .success(loaded)
                // The cached image was told already.
                if loaded.outcome == .notModified { return result }
            } catch {
                result = .failure(error)
                if error.code == .cancelled, configuration.compatibility == .sd3 { return result }
            }
            completed?(result)
            return result
        }
        return ImageLoadOperation(url: image.url, task: task)
    }
}
