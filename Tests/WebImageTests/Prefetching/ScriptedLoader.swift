import WebImage

/// Answers by a script: URLs with an error fail with it, the others succeed; held ones wait for `release`.
actor ScriptedLoader: ImageLoading {
    private let errors: [String: WebImageError]
    private var held: Set<String>
    private var waiting: [String: [CheckedContinuation<Void, Never>]] = [:]
    private var startWaiters: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
    private var running = 0
    private var loaded: Set<String> = []
    private(set) var requests: [String] = []
    private(set) var options: [WebImageOptions] = []
    private(set) var mostAtOnce = 0

    init(errors: [String: WebImageError] = [:], held: Set<String> = []) {
        self.errors = errors
        self.held = held
    }

    func loadImage(with url: String, options: WebImageOptions) async throws(WebImageError) -> LoadedImage {
        requests.append(url)
        self.options.append(options)
        running += 1
        mostAtOnce = max(mostAtOnce, running)
        defer { running -= 1 }
        for (count, continuation) in startWaiters where count <= requests.count { continuation.resume() }
        startWaiters.removeAll { $0.count <= requests.count }
        if held.contains(url) { await hold(url) }
        if Task.isCancelled { throw WebImageError(.cancelled, "cancelled") }
        if let error = errors[url] { throw error }
        let info = ImageInfo(format: .png, width: 1, height: 1, level: .decode)
        let isRepeat = !loaded.insert(url).inserted
        return LoadedImage(
            url: url, key: url, info: info, byteCount: 67, cacheType: isRepeat ? .disk : .none,
            outcome: isRepeat ? .hit : .downloaded)
    }

    /// Lets a held URL go on, and its later loads at once.
    func release(_ url: String) {
        held.remove(url)
        for continuation in waiting.removeValue(forKey: url) ?? [] { continuation.resume() }
    }

    /// Returns once so many loads have begun.
    func started(_ count: Int) async {
        if requests.count >= count { return }
        await withCheckedContinuation { startWaiters.append((count, $0)) }
    }

    private func hold(_ url: String) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                if Task.isCancelled { continuation.resume() } else { waiting[url, default: []].append(continuation) }
            }
        } onCancel: {
            Task { await self.release(url) }
        }
    }
}
