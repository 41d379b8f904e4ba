internal import Threading

/// Cookies shared by the downloads with ``DownloadOptions/handleCookies`` and this jar, each sent only to its site. Kept only in memory.
///
/// Each downloader keeps its own cookies for a jar.
public final class CookieJar: Sendable {
    private static let count = Locked<UInt64>(0)

    /// Unique, unlike the address of an object.
    let id: UInt64
    private let endings = Locked<[@Sendable () -> Void]>([])

    /// Creates an empty jar.
    public init() {
        id = Self.count.withLock { count in
            count += 1
            return count
        }
    }

    deinit { for end in endings.withLock({ $0 }) { end() } }

    func onRelease(_ body: @escaping @Sendable () -> Void) { endings.withLock { $0.append(body) } }
}
