internal import HeapModule

// The life of one operation: queued, transferred, redirected, tried again, completed.
extension ImageDownloader {
    func enqueue(_ operation: DownloadOperation, goesFirst: Bool = false) {
        operation.since = monotonicSeconds()
        queue.enqueue(
            operation, host: host(of: operation), priority: operation.priority,
            limit: configuration.connectionLimit(to: operation.request), goesFirst: goesFirst)
    }

    func releaseSlot(of operation: DownloadOperation) {
        guard let host = operation.slotHost else { return }
        operation.slotHost = nil
        queue.release(host: host)
    }

    func startTransfer(of operation: DownloadOperation) -> Bool {
        do throws(WebImageError) {
            try admitAddress(of: operation)
            let handle = try takeHandle(for: operation)
            operation.beginTransfer(on: handle, now: now)
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

    /// Behind a proxy only the proxy is dialled, so that an address in the URL is judged here.
    private func admitAddress(of operation: DownloadOperation) throws(WebImageError) {
        let request = operation.request
        operation.isNamedByOperator = named.contains { $0.matches(request) }
        guard configuration.proxy != nil else { return }
        if !operation.isNamedByOperator, let address = request.literalAddress,
            let reason = configuration.addressPolicy.refusal(of: address, port: request.port)
        {
            var error = WebImageError(.refused, reason)
            error.refusedAddress = "\(request.host):\(request.port)"
            throw error
        }
        operation.isNamedByOperator = true
    }

    private func takeHandle(for operation: DownloadOperation) throws(WebImageError) -> CurlHandle {
        let keepsCookies = operation.options.contains(.handleCookies)
        if let handle = keepsCookies ? idleCookieHandles.popLast() : idleHandles.popLast() { return handle }
        let share: CurlShare
        if keepsCookies {
            if let present = cookieShare { share = present } else { share = try CurlShare(cookies: true) }
            cookieShare = share
        } else {
            if let present = plainShare { share = present } else { share = try CurlShare(cookies: false) }
            plainShare = share
        }
        return try CurlHandle(
            configuration: configuration, share: share, keepsCookies: keepsCookies, connectTo: connectTo,
            resolve: resolve)
    }

    private func headers(for operation: DownloadOperation) -> CurlList {
        let own = operation.key.headers
        guard !own.isEmpty else { return operation.isAtOrigin ? headers : headersWithoutCredentials }
        let names = Set(own.map { $0.name.lowercased() })
        let all = configuration.headers.filter { !names.contains($0.name.lowercased()) } + own
        return CurlList(headers: operation.isAtOrigin ? all : all.filter { !$0.isCredential })
    }

    /// Takes the transfer out of curl and gives its slots back; nothing where there is none.
    func stopTransfer(of operation: DownloadOperation) {
        if let handle = operation.handle {
            multi.remove(handle)
            handle.end()
            operation.handle = nil
            if handle.keepsCookies { idleCookieHandles.append(handle) } else { idleHandles.append(handle) }
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
        switch TransferEnd(operation: operation, handle: handle, code: code) {
        case .image:
            noteAnswer(of: operation, nil, firstByte: governor == nil ? nil : handle.firstByte)
            let image = handle.image(for: operation, body: operation.takeBody())
            stopTransfer(of: operation)
            complete(operation, .success(image))
        case .redirect(let location):
            noteAnswer(of: operation, nil, firstByte: nil)
            stopTransfer(of: operation)
            follow(location, of: operation)
        case .failure(let error):
            if error.httpStatus != nil { noteAnswer(of: operation, error, firstByte: nil) }
            stopTransfer(of: operation)
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
        enqueue(operation, goesFirst: true)
    }

    func fail(_ operation: DownloadOperation, _ error: WebImageError) {
        if noteSilence(of: operation, error) { operation.excused += 1 }
        let pause = retryPolicy.delay(
            afterAttempts: operation.attempts - operation.excused, error: error, random: Double.random(in: 0...1))
        guard let pause else {
            var error = error
            error.attempts = operation.attempts
            return complete(operation, .failure(error))
        }
        operation.since = now
        operation.pause = (now + pause, error)
        nextRetry += 1
        retries.insert(Retry(due: now + pause, number: nextRetry, operation: operation))
    }

    func complete(_ operation: DownloadOperation, _ result: Result<DownloadedImage, WebImageError>) {
        if operations[operation.key] === operation { operations[operation.key] = nil }
        let waiters = operation.waiters
        operation.waiters = []
        for waiter in waiters { waiter.end(result) }
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
