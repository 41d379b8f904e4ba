internal import Threading

/// Cookies that belong together: downloads with ``DownloadOptions/handleCookies`` and the same jar see each other's cookies, each of its
/// site, and no others. They are in memory alone, and go with the jar.
///
/// A jar has its own cookies in each downloader that it is given to.
public final class CookieJar: Sendable {
    private static let count = Locked<UInt64>(0)

    /// Never used again, unlike the address of an object.
    let id: UInt64
    private let endings = Locked<[@Sendable () -> Void]>([])

    /// An empty jar.
    public init() {
        id = Self.count.withLock { count in
            count += 1
            return count
        }
    }

    deinit { for end in endings.withLock({ $0 }) { end() } }

    /// Runs something when the jar goes.
    func whenGone(_ body: @escaping @Sendable () -> Void) { endings.withLock { $0.append(body) } }
}
