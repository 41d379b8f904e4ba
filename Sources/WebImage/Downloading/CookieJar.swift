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

/// What curl has for one jar, or for the downloads without cookies: the share handle, and easy handles that no transfer uses now.
struct CurlHandlePool {
    let share: CurlShare
    var idle: [CurlHandle] = []
}

extension ImageDownloader {
    /// A handle for an operation, of its jar.
    func takeHandle(for operation: DownloadOperation) throws(WebImageError) -> CurlHandle {
        let jar = operation.key.jar
        if let handle = pools[jar]?.idle.popLast() { return handle }
        let share: CurlShare
        if let present = pools[jar]?.share {
            share = present
        } else {
            share = try CurlShare(cookies: jar != nil)
            pools[jar] = CurlHandlePool(share: share)
            // The downloader's own jar stays as long as its session.
            operation.cookies?.whenGone { [weak self] in self?.forget(jar) }
        }
        let handle = try CurlHandle(
            configuration: configuration, share: share, sockets: multi.sockets, closed: closedPlaces,
            spooling: spooling, jar: jar,
            connectTo: connectTo, resolve: resolve)
        handle.bandwidth = bandwidth
        return handle
    }

    /// Keeps a handle for the next operation of the same jar, where that is still there.
    func giveBack(_ handle: CurlHandle) { pools[handle.jar]?.idle.append(handle) }

    /// How many jars have cookies here.
    package var jarCount: Int { pools.keys.count { $0 != nil } }

    private nonisolated func forget(_ jar: UInt64?) {
        perform { $0.pools[jar] = nil }
    }
}
