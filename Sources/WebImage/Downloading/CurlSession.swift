internal import CCurl

/// What the transfers of a session share: idle handles and their shared state, headers and credentials. Used only on the downloader's
/// thread.
final class CurlSession {
    private final class Pool {
        let share: CurlShare
        var idle: [CurlHandle] = []

        init(_ share: CurlShare) { self.share = share }
    }

    /// Bytes of cookies in a jar, as lines of a cookie file. curl bounds those of a response and of a request, and keeps all others.
    static let mostCookieBytes = 1 << 20

    private var configuration: ImageDownloader.Configuration
    private let sockets: CurlSockets
    private let closed: BlockedEndpoints
    private let spooling: SpoolingTransfers
    /// Called on any thread when a jar is released.
    private let didReleaseJar: @Sendable (UInt64) -> Void
    /// By jar number; nil: without cookies.
    private var pools: [UInt64?: Pool] = [:]
    private var connectTo: CurlList?
    private var resolve: CurlList?
    private let names = CurlNames()
    /// Cached headers of the last profile used, for requests to its site and to other sites.
    private var headers: (of: RequestProfile, atOrigin: CurlList, offOrigin: CurlList)?

    init(
        _ configuration: ImageDownloader.Configuration, sockets: CurlSockets, closed: BlockedEndpoints,
        spooling: SpoolingTransfers, didReleaseJar: @escaping @Sendable (UInt64) -> Void
    ) {
        self.configuration = configuration
        self.sockets = sockets
        self.closed = closed
        self.spooling = spooling
        self.didReleaseJar = didReleaseJar
        connectTo = Self.list(configuration.connectTo)
        resolve = Self.list(configuration.resolve)
    }

    private static func list(_ lines: [String]) -> CurlList? { lines.isEmpty ? nil : CurlList(lines) }

    /// Starts using another configuration. The previous one's handles must be gone (``removeAll()``).
    func apply(_ new: ImageDownloader.Configuration) {
        configuration = new
        connectTo = Self.list(new.connectTo)
        resolve = Self.list(new.resolve)
    }

    // MARK: Handles

    /// Returns a handle of the operation's jar.
    /// * `bandwidth`: bandwidth limit for bodies.
    func takeHandle(
        for operation: DownloadOperation, bandwidth: BandwidthLimit?
    ) throws(WebImageError) -> CurlHandle {
        let jar = operation.key.jar
        let pool = pools[jar]
        if let handle = pool?.idle.popLast() { return handle }
        let share: CurlShare
        if let pool {
            share = pool.share
        } else {
            share = try CurlShare(cookies: jar != nil)
            pools[jar] = Pool(share)
            // The downloader's own jar lives as long as its session.
            if let jar { operation.parameters.cookies?.onRelease { [didReleaseJar] in didReleaseJar(jar) } }
        }
        return try CurlHandle(
            configuration: configuration, profile: operation.profile, share: share, sockets: sockets, names: names,
            closed: closed, bandwidth: bandwidth, spooling: spooling, jar: jar, connectTo: connectTo, resolve: resolve)
    }

    /// Keeps a handle for the next operation of the same jar, if that still exists.
    func giveBack(_ handle: CurlHandle) {
        guard let pool = pools[handle.jar] else { return }
        pool.idle.append(handle)
        let set = pool.share.cookieBytes
        guard handle.jar != nil, set.pointee > Self.mostCookieBytes else { return }
        // The same cookies may have been set again and again.
        set.pointee = ccurl_cookie_bytes(handle.pointer)
        guard set.pointee > Self.mostCookieBytes / 2 else { return }
        ccurl_set_string(handle.pointer, CURLOPT_COOKIELIST, "ALL")
        set.pointee = 0
    }

    /// Bytes of the cookies in the jars whose handles are idle.
    var cookieBytes: Int { pools.values.reduce(0) { $0 + ($1.idle.last.map { ccurl_cookie_bytes($0.pointer) } ?? 0) } }

    func removeAll() {
        pools = [:]
        names.removeAll()
    }

    func forget(_ jar: UInt64) { pools[jar] = nil }

    var jarCount: Int { pools.keys.count { $0 != nil } }

    // MARK: Requests

    func begin(_ operation: DownloadOperation, on handle: CurlHandle, route: NameBook.Route, now: Double) {
        handle.begin(
            operation, headers: headers(for: operation), credential: credential(for: operation),
            route: route, now: now)
    }

    /// The credential in the URL, otherwise the first configured one for the host of this hop.
    private func credential(for operation: DownloadOperation) -> Credential? {
        if operation.isAtOrigin, let user = operation.start.user {
            return Credential(user: user, password: operation.start.password ?? "")
        }
        guard !configuration.credentials.isEmpty else { return nil }
        return configuration.credentials.first { $0.isFor(operation.request, isAtOrigin: operation.isAtOrigin) }
    }

    private func headers(for operation: DownloadOperation) -> CurlList {
        let rest = operation.rest?.headers ?? []
        guard !operation.key.headers.isEmpty || !rest.isEmpty || operation.requestHeaders != nil else {
            let (_, atOrigin, offOrigin) = lists(of: operation.profile)
            return operation.isAtOrigin ? atOrigin : offOrigin
        }
        let all = operation.requestHeaders ?? operation.profile.configuration.headers(with: operation.key.headers)
        return CurlList(headers: (operation.isAtOrigin ? all : all.filter(\.isSafeAcrossSites)) + rest)
    }

    private func lists(of profile: RequestProfile) -> (of: RequestProfile, atOrigin: CurlList, offOrigin: CurlList) {
        if let headers, headers.of === profile { return headers }
        let all = profile.configuration.headers
        let lists = (profile, CurlList(headers: all), CurlList(headers: all.filter(\.isSafeAcrossSites)))
        headers = lists
        return lists
    }
}
