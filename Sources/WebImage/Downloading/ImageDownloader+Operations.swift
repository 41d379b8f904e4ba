internal import HeapModule
internal import Threading

// The life of one operation: queued, transferred, redirected, tried again, completed.
extension ImageDownloader {
    func enqueue(_ operation: DownloadOperation, at place: QueuePlace = .inOrder) {
        operation.since = MonotonicClock.now
        operation.host = host(of: operation)
        queue.enqueue(
            operation, host: operation.host, priority: operation.priority,
            limit: configuration.connectionLimit(to: operation.request, asked: operation.maxConnectionsPerHost),
            at: place)
    }

    func releaseSlot(of operation: DownloadOperation) {
        guard let host = operation.slotHost else { return }
        operation.slotHost = nil
        queue.release(host: host)
        shares?.didEnd(
            host, load: (queue.runningCount(host: host), queue.waitingCount(host: host)), now: MonotonicClock.now)
    }

    func startTransfer(of operation: DownloadOperation) -> Bool {
        do throws(WebImageError) {
            try admitAddress(of: operation)
            let handle = try takeHandle(for: operation)
            if !operation.hasBegun { listeners.tell(.start, of: operation) }
            operation.beginTransfer(on: handle, now: now)
            operation.credential = credential(for: operation)
            handle.begin(operation, headers: headers(for: operation))
            do throws(WebImageError) {
                try multi.add(handle)
            } catch {
                operation.handle = nil
                handle.end()
                throw error
            }
        } catch {
            releaseSlot(of: operation)
            fail(operation, error)
            return false
        }
        if running.isEmpty { nextCheck = now + checkInterval }
        operation.index = running.count
        running.append(operation)
        return true
    }

    /// Behind a proxy only the proxy is dialled, so that what the URL names is judged here.
    private func admitAddress(of operation: DownloadOperation) throws(WebImageError) {
        let request = operation.request
        if let reason = closedPlaces.refusal(ofName: request.host, port: request.port) {
            throw WebImageError(.refused, reason)
        }
        operation.isNamedByOperator = named.contains { $0.matches(request) }
        guard configuration.proxy != nil else { return }
        try admitBehindProxy(request, isNamedByOperator: operation.isNamedByOperator)
        operation.isNamedByOperator = true
    }

    /// Those of the URL itself, then the first of the configuration's that is for the host of this hop.
    private func credential(for operation: DownloadOperation) -> Credential? {
        if operation.isAtOrigin, let user = operation.start.user {
            return Credential(user: user, password: operation.start.password ?? "")
        }
        guard !configuration.credentials.isEmpty else { return nil }
        let host = operation.request.host
        return configuration.credentials.first { $0.hosts.isEmpty ? operation.isAtOrigin : $0.hosts.contains(host) }
    }

    private func headers(for operation: DownloadOperation) -> CurlList {
        let rest = operation.partial.flatMap { $0.url == operation.request.text ? $0.headers : nil } ?? []
        operation.asksForRest = !rest.isEmpty
        guard !operation.key.headers.isEmpty || !rest.isEmpty || operation.requestHeaders != nil else {
            return operation.isAtOrigin ? headers : headersOffOrigin
        }
        let all = operation.requestHeaders ?? headers(of: operation.key)
        return CurlList(headers: (operation.isAtOrigin ? all : all.filter(\.isHarmless)) + rest)
    }

    /// The configured headers and a download's own, which come first where both have one.
    private func headers(of key: DownloadOperation.Key) -> [HTTPHeader] {
        let names = Set(key.headers.map { $0.name.lowercased() })
        return configuration.headers.filter { !names.contains($0.name.lowercased()) } + key.headers
    }

    /// What the filter and the modifier make of a download's request.
    func modifiedRequest(
        _ key: DownloadOperation.Key, _ request: RequestURL
    ) throws(WebImageError) -> (request: RequestURL, headers: [HTTPHeader]?) {
        guard configuration.headersFilter != nil || configuration.requestModifier != nil else { return (request, nil) }
        var wanted = DownloadRequest(url: key.url, headers: headers(of: key))
        if let filter = configuration.headersFilter { wanted.headers = filter(key.url, wanted.headers) }
        if let modify = configuration.requestModifier {
            guard let modified = modify(wanted) else {
                throw WebImageError(.invalidDownloadOperation, "the request modifier refused the request")
            }
            wanted = modified
        }
        if let bad = wanted.headers.first(where: { !$0.isValid }) {
            throw WebImageError(.invalidDownloadOperation, "the modified header \(bad.name) cannot be sent")
        }
        return (wanted.url == key.url ? request : try RequestURL(wanted.url), wanted.headers)
    }

    /// Takes the transfer out of curl and gives its slots back; nothing where there is none.
    func stopTransfer(of operation: DownloadOperation) {
        if let handle = operation.handle {
            operation.countSpent(now: MonotonicClock.now)
            multi.remove(handle)
            // curl may remember of one that stood still that it does.
            let isClean = !handle.isPaused
            handle.end()
            operation.handle = nil
            // Otherwise another one is made where it is needed.
            if isClean { giveBack(handle) }
            if operation.isParked { parkedCount -= 1 }
            operation.isParked = false
            let last = running.removeLast()
            if last !== operation {
                running[operation.index] = last
                last.index = operation.index
            }
        }
        releaseSlot(of: operation)
    }

    func didFinishTransfer(of operation: DownloadOperation, on handle: CurlHandle, code: Int32) {
        noteEnd(of: operation, on: handle)
        switch TransferEnd(operation: operation, handle: handle, code: code) {
        case .image:
            delivering.insert(operation.request.origin)
            noteAnswer(of: operation, nil, firstByte: governor == nil ? nil : handle.firstByte)
            let image = handle.image(for: operation, body: operation.takeBody())
            stopTransfer(of: operation)
            complete(operation, .success(image))
        case .redirect(let location):
            noteAnswer(of: operation, nil, firstByte: nil)
            stopTransfer(of: operation)
            follow(location, of: operation)
        case .failure(let error):
            operation.keepPartial(handle, least: configuration.resumeFrom, error: error)
            // Who sends a part of an answer is there.
            if error.httpStatus != nil || operation.progress.bytes > 0 {
                noteAnswer(of: operation, error, firstByte: nil)
            }
            stopTransfer(of: operation)
            noteCertificate(of: operation, error)
            fail(operation, error)
        }
    }

    /// Every hop goes through the queue and the checks of a first one.
    private func follow(_ location: String, of operation: DownloadOperation) {
        guard operation.redirects < configuration.maxRedirects else {
            return fail(
                operation, WebImageError(.tooManyRedirects, "more than \(configuration.maxRedirects) redirects"))
        }
        do throws(WebImageError) {
            operation.follow(try operation.request.redirected(to: location))
        } catch {
            return fail(operation, error)
        }
        enter(operation, at: .first)
    }

    func fail(_ operation: DownloadOperation, _ error: WebImageError) {
        operation.metSilence =
            governor != nil && HostGovernor.isSilence(error, bytes: operation.progress.bytes)
        if noteSilence(of: operation, error) { operation.excused += 1 }
        endProbe(of: operation)
        let pause = retryPolicy.delay(
            afterAttempts: operation.attempts - operation.excused, error: error, random: Double.random(in: 0...1))
        guard let pause, mayTryAgain(operation, error) else {
            var error = error
            error.attempts = operation.attempts
            return complete(operation, .failure(error))
        }
        operation.since = now
        operation.pause = (now + pause, error)
        nextRetry += 1
        retries.insert(Retry(due: now + pause, number: nextRetry, operation: operation))
    }

    /// Whether another try may begin: the URL has time left, and was not too slow on a host that has completed no body. There a further
    /// try would give a server that drips its bytes as long again; a merely silent one is asked again while its URL has taken less than
    /// ``Configuration/lowSpeedTime``, so that with the defaults such URLs end within 35 s.
    private func mayTryAgain(_ operation: DownloadOperation, _ error: WebImageError) -> Bool {
        if operation.spent.check(configuration, attempts: operation.attempts) != nil { return false }
        guard error.code == .timedOut, operation.progress.requestWasSent, !delivering.contains(operation.request.origin)
        else {
            return true
        }
        return !operation.progress.wasTooSlow && operation.spent.seconds < configuration.lowSpeedTime
    }

    func complete(_ operation: DownloadOperation, _ result: Result<DownloadedImage, WebImageError>) {
        if let index = operations.index(forKey: operation.key), operations[index].value === operation {
            operations.remove(at: index)
        }
        endProbe(of: operation)
        tellEnd(of: operation, result)
        let waiters = operation.waiters
        operation.waiters = []
        for waiter in waiters { waiter.end(result) }
        wakeIdleWaiters()
    }
}

/// An operation that waits for its next try.
struct Retry: Comparable {
    let due: Double
    let number: Int
    let operation: DownloadOperation

    static func < (lhs: Self, rhs: Self) -> Bool { (lhs.due, lhs.number) < (rhs.due, rhs.number) }
    static func == (lhs: Self, rhs: Self) -> Bool { lhs.number == rhs.number }
}
