internal import Threading

/// A set of cookies: downloads with ``DownloadOptions/handleCookies`` that share a jar share its cookies, each sent only to its site. Kept
/// in memory for the lifetime of the jar.
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

    /// Registers a closure to run when the jar is released.
    func whenGone(_ body: @escaping @Sendable () -> Void) { endings.withLock { $0.append(body) } }
}
