internal import HeapModule

// What all downloads have in common, and when it changes.
extension ImageDownloader {
    /// Ends every download with `cancelled`, closes every connection, forgets TLS sessions and cookies, and goes on with a new
    /// configuration (`createNewSessionWithConfiguration:`). What is known of hosts stays,
    /// so that one which asked to be left alone is left alone; how they are treated is the new configuration's.
    /// - Parameter new: nil: as it was, with the headers and numbers that were set since.
    /// - Throws: `invalidConfiguration`; then nothing has changed.
    public func createNewSession(configuration new: Configuration? = nil) throws(WebImageError) {
        try new?.validate()
        cancelAllDownloads()
        forgetConnections()
        guard var new else { return }
        // What a manager has added for its own sake stays.
        new.openTemporaryFile = new.openTemporaryFile ?? configuration.openTemporaryFile
        new.filePool = new.filePool ?? configuration.filePool
        new.fileCalls = new.fileCalls ?? configuration.fileCalls
        new.inspectHeader = new.inspectHeader ?? configuration.inspectHeader
        renewGovernor(new)
        configuration = new
        retryPolicy = new.retryPolicy
        limits = DownloadOperation.Limits(new)
        named = (new.connectTo + new.resolve).compactMap(NamedPlace.init)
        checkInterval = new.checkInterval
        robots = new.robots
        robots?.isShared = isShared
        bandwidth = new.bandwidth(shared: sharedRate)
        connectTo = new.connectTo.isEmpty ? nil : CurlList(new.connectTo)
        resolve = new.resolve.isEmpty ? nil : CurlList(new.resolve)
        makeHeaders()
        queue = DownloadQueue(order: new.executionOrder)
        setMaxConcurrentDownloads(new.maxConcurrentDownloads)
    }

    private func renewGovernor(_ new: Configuration) {
        if let governor, !new.hosts.isIdle {
            governor.renew(new.hosts, longestWait: new.maxRetryAfter)
        } else {
            governor = new.governor
            governor?.isShared = isShared
        }
    }

    /// Ends every download, and every later one at once, with `cancelled`, and closes every connection before it returns. The
    /// thread ends when the downloader is released: a call that is on its way to the actor still needs it.
    ///
    /// Call it before the process exits: OpenSSL frees what all connections need at exit, whether or not threads still use it.
    public func invalidateSessionAndCancel() {
        isInvalidated = true
        cancelAllDownloads()
        forgetConnections()
        listeners.finish()
    }

    /// Ends every later download at once with `cancelled`, waits for those under way, and closes every connection
    /// (`invalidateSessionAndCancel:` with NO).
    public func finishDownloadsAndInvalidateSession() async {
        isInvalidated = true
        while !operations.isEmpty {
            await withUnsafeContinuation { idleWaiters.append($0) }
        }
        invalidateSessionAndCancel()
    }

    /// Closes the connections that are kept for later transfers, where none is under way: somebody lacks descriptors.
    package func closeIdleConnections() {
        if running.isEmpty { forgetConnections() }
    }

    private func forgetConnections() {
        pools = [:]
        multi.closeConnections()
        multi.setConnectionLimit(configuration.connectionLimit(maxConcurrentDownloads))
    }

    /// Sets a header of every request that begins from now on; nil removes it.
    /// - Throws: `invalidConfiguration` where it cannot be sent.
    public func setValue(_ value: String?, forHTTPHeaderField name: String) throws(WebImageError) {
        guard HTTPHeader(name, value ?? "").isValid else {
            throw WebImageError(.invalidConfiguration, "the header \(name) has a character that cannot be sent")
        }
        configuration.setValue(value, forHTTPHeaderField: name)
        makeHeaders()
    }

    /// The value of a header of every request.
    public func value(forHTTPHeaderField name: String) -> String? {
        configuration.value(forHTTPHeaderField: name)
    }

    /// Which waiting download is started next, from now on.
    public func setExecutionOrder(_ order: DownloadExecutionOrder) {
        configuration.executionOrder = order
        queue.reorder(order)
    }

    private func makeHeaders() {
        headers = CurlList(headers: configuration.headers)
        headersOffOrigin = CurlList(headers: configuration.headers.filter(\.isHarmless))
    }
}
