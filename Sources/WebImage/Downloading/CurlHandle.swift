internal import CCurl
internal import Glibc
internal import Threading

/// A curl easy handle with all constant options set; reused for one operation at a time. Used only on the downloader's thread. curl's
/// callbacks get it as their user pointer: it is alive while it is in the multi handle, because the operation that runs on it owns it.
final class CurlHandle {
    let pointer: UnsafeMutableRawPointer
    /// Number of its cookie jar; nil: no cookies are sent or kept.
    let jar: UInt64?
    private(set) var operation: DownloadOperation?
    private var isAddressOverridden = false
    private(set) var response: ReceivedResponse
    private let header = CurlHeader()
    private var connecting = DialledAddresses()
    let info: CurlInfo
    /// Bandwidth limit for bodies; nil: none.
    private let bandwidth: BandwidthLimit?
    /// Transfers paused because their body file is written more slowly than bytes arrive.
    private let spooling: SpoolingTransfers
    private(set) var isPaused = false
    private let policy: AddressPolicy
    private let closed: BlockedEndpoints
    /// Behind a proxy only the proxy, which the operator set, is dialled.
    private let proxy: String?
    private var usesProxy: Bool { proxy != nil }
    private let errorText: UnsafeMutablePointer<CChar>
    private let share: CurlShare
    private let sockets: CurlSockets
    private let names: CurlNames
    /// The name and port that it holds in ``names``.
    private var nameEntry: CurlNames.Entry?
    /// The operator's addresses; nil: none.
    private let resolve: CurlList?
    /// Addresses for this transfer: curl reads them at its start.
    private var addresses: CurlList?
    /// Seconds for which curl keeps the addresses of its own resolver; -1: for ever.
    private var nameCacheTime: Int?
    private var keepsConnection = true, idleTime: Int?
    private let connectTo: CurlList?
    // The options of the previous operation; only differences are set.
    private var profile: RequestProfile?
    private var headers: CurlList?
    private var usesTLS: Bool?
    private var verifies = true
    private var decodes = true
    private var credential: Credential?
    private let usesHTTP2: Bool

    init(
        configuration: ImageDownloader.Configuration, profile: RequestProfile, share: CurlShare,
        sockets: CurlSockets, names: CurlNames, closed: BlockedEndpoints, bandwidth: BandwidthLimit?,
        spooling: SpoolingTransfers,
        jar: UInt64?, connectTo: CurlList?, resolve: CurlList?
    ) throws(WebImageError) {
        guard let handle = curl_easy_init() else { throw WebImageError(.localFault, "curl cannot make a handle") }
        pointer = handle
        info = CurlInfo(handle)
        response = ReceivedResponse(limits: profile.limits, header: header)
        self.jar = jar
        self.share = share
        self.sockets = sockets
        self.names = names
        self.resolve = resolve
        self.bandwidth = bandwidth
        self.spooling = spooling
        usesHTTP2 = configuration.usesHTTP2
        policy = configuration.addressPolicy
        self.closed = closed
        proxy = configuration.proxy
        self.connectTo = connectTo
        errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
        errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        setConstants(configuration)
        if let connectTo { ccurl_set_pointer(handle, CURLOPT_CONNECT_TO, connectTo.pointer) }
    }

    deinit {
        curl_easy_cleanup(pointer)
        errorText.deallocate()
    }

    private func setConstants(_ configuration: ImageDownloader.Configuration) {
        let context = Unmanaged.passUnretained(self).toOpaque()
        ccurl_set_pointer(pointer, CURLOPT_PRIVATE, context)
        ccurl_set_pointer(pointer, CURLOPT_ERRORBUFFER, errorText)
        ccurl_set_pointer(pointer, CURLOPT_SHARE, share.pointer)
        if jar != nil { ccurl_set_string(pointer, CURLOPT_COOKIEFILE, "") }
        header.addCookies(to: share.cookieBytes)
        // SIGPIPE is blocked on the thread (DownloadLoop.prepareThread); no alarm signal for DNS either.
        ccurl_set_long(pointer, CURLOPT_NOSIGNAL, 1)
        // Otherwise a transfer that ends during name resolution would block the thread until the resolver answers, because its removal
        // joins curl's resolver thread (curl manual, CURLOPT_QUICK_EXIT).
        ccurl_set_long(pointer, CURLOPT_QUICK_EXIT, 1)
        ccurl_set_string(pointer, CURLOPT_PROTOCOLS_STR, "http,https")
        ccurl_set_string(pointer, CURLOPT_REDIR_PROTOCOLS_STR, "http,https")
        ccurl_set_long(pointer, CURLOPT_FOLLOWLOCATION, 0)
        // Decodes every encoding that curl knows, even if unsolicited; CurlList removes the Accept-Encoding header. It refuses a body in one
        // that it does not know, by its first bytes. Up to 8.5 it looks before each of them whether it decodes, so the end of the header is
        // early enough to turn that off. From 8.6 on it looks as it reads the header's line: such a body is refused, and TransferEnd asks again.
        ccurl_set_string(pointer, CURLOPT_ACCEPT_ENCODING, "")
        header.onCoding(of: context) { context in
            let handle = CurlHandle.from(context)
            guard handle.operation?.leavesCodings == false else { return }
            handle.decode(ContentCoding(handle.info.headers("Content-Encoding")).isKnown)
        }
        // An empty string keeps curl from reading the proxy from the environment.
        ccurl_set_string(pointer, CURLOPT_PROXY, configuration.proxy ?? "")
        ccurl_set_string(pointer, CURLOPT_NOPROXY, configuration.proxy == nil ? "*" : "")
        if let file = configuration.caFile ?? TrustedAuthorities.file {
            ccurl_set_string(pointer, CURLOPT_CAINFO, file)
        }
        if let file = configuration.clientCertificateFile { ccurl_set_string(pointer, CURLOPT_SSLCERT, file) }
        if let file = configuration.clientKeyFile { ccurl_set_string(pointer, CURLOPT_SSLKEY, file) }
        if let password = configuration.clientKeyPassword { ccurl_set_string(pointer, CURLOPT_KEYPASSWD, password) }
        switch configuration.ipVersion {
        case .any: break
        case .v4: ccurl_set_long(pointer, CURLOPT_IPRESOLVE, Int(CURL_IPRESOLVE_V4))
        case .v6: ccurl_set_long(pointer, CURLOPT_IPRESOLVE, Int(CURL_IPRESOLVE_V6))
        }
        // Measured on 50 KB bodies: 16 KB needs more calls, and from 128 KB on malloc returns the buffer to the kernel after every
        // transfer, whose pages then fault again (90 us of CPU per request instead of 55).
        ccurl_set_long(pointer, CURLOPT_BUFFERSIZE, 64 << 10)
        ccurl_set_write(pointer, CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
            CurlHandle.from(context).didReceive(UnsafeRawBufferPointer(start: bytes, count: size * count))
        }
        ccurl_set_pointer(pointer, CURLOPT_WRITEDATA, context)
        ccurl_set_write(pointer, CURLOPT_HEADERFUNCTION, ccurl_count_header)
        ccurl_set_pointer(pointer, CURLOPT_HEADERDATA, header.pointer)
        ccurl_set_opensocket(pointer) { context, purpose, address in
            CurlHandle.from(context).openSocket(address)
        }
        ccurl_set_pointer(pointer, CURLOPT_OPENSOCKETDATA, context)
        // A connection keeps both of these from its first transfer on, possibly longer than that transfer's handle lives.
        ccurl_set_closesocket(pointer) { context, socket in
            Unmanaged<CurlSockets>.fromOpaque(context!).takeUnretainedValue().close(socket)
        }
        ccurl_set_pointer(pointer, CURLOPT_CLOSESOCKETDATA, Unmanaged.passUnretained(sockets).toOpaque())
        ccurl_set_prereq(pointer) { context, address, _, port, _ in
            CurlHandle.from(context).maySend(to: address, port: Int(port)) ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
        }
        ccurl_set_pointer(pointer, CURLOPT_PREREQDATA, context)
    }

    private func decode(_ decodes: Bool) {
        if decodes != self.decodes { ccurl_set_long(pointer, CURLOPT_HTTP_CONTENT_DECODING, decodes ? 1 : 0) }
        self.decodes = decodes
    }

    private static func from(_ context: UnsafeMutableRawPointer?) -> CurlHandle {
        Unmanaged<CurlHandle>.fromOpaque(context!).takeUnretainedValue()
    }

    static func from(easy: UnsafeMutableRawPointer) -> CurlHandle? {
        guard let context = ccurl_get_pointer(easy, CURLINFO_PRIVATE) else { return nil }
        return Unmanaged<CurlHandle>.fromOpaque(context).takeUnretainedValue()
    }

    /// Sets whether its connection is kept after the transfer, and for how many seconds a connection may have been idle at its start.
    func keepConnection(_ keeps: Bool, for seconds: Int) {
        if keeps != keepsConnection { ccurl_set_long(pointer, CURLOPT_FORBID_REUSE, keeps ? 0 : 1) }
        if seconds != idleTime { ccurl_set_long(pointer, CURLOPT_MAXAGE_CONN, seconds) }
        (keepsConnection, idleTime) = (keeps, seconds)
    }

    /// Sets the options of one request.
    func begin(
        _ operation: DownloadOperation, headers: CurlList, credential: Credential?, route: NameBook.Route, now: Double
    ) {
        self.operation = operation
        isAddressOverridden = route.isAddressOverridden
        set(route, port: operation.request.port)
        response.begin(operation, now: now)
        connecting.begin()
        decode(!operation.leavesCodings)
        errorText[0] = 0
        let url = operation.request
        // Passing the string itself would copy it into an array.
        url.text.withCString { _ = ccurl_set_string(pointer, CURLOPT_URL, $0) }
        if profile !== operation.profile { set(operation.profile) }
        if self.headers !== headers {
            ccurl_set_pointer(pointer, CURLOPT_HTTPHEADER, headers.pointer)
            self.headers = headers
        }
        let hasTLS = url.scheme == "https"
        if usesTLS != hasTLS {
            usesTLS = hasTLS
            // Only transfers that may become HTTP/2 (by ALPN) wait to share a connection: an unresponsive plain one would block its host's
            // transfers.
            let mayShare = hasTLS && usesHTTP2
            ccurl_set_long(pointer, CURLOPT_PIPEWAIT, mayShare ? 1 : 0)
            ccurl_set_long(
                pointer, CURLOPT_HTTP_VERSION, mayShare ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1)
        }
        let verifies = !operation.key.options.contains(.allowInvalidSSLCertificates)
        if self.verifies != verifies {
            self.verifies = verifies
            ccurl_set_long(pointer, CURLOPT_SSL_VERIFYPEER, verifies ? 1 : 0)
            ccurl_set_long(pointer, CURLOPT_SSL_VERIFYHOST, verifies ? 2 : 0)
        }
        if self.credential != credential { set(credential) }
    }

    /// Gives curl the addresses of a name. curl takes such a list once, at the transfer's start, so the operator's is set each time.
    private func set(_ route: NameBook.Route, port: Int) {
        var list = resolve
        if let name = route.name {
            let (entry, lines) = names.begin(name.text, port: port, name.addresses)
            nameEntry = entry
            list = lines
        } else if !route.isAddressOverridden {
            list = names.takeUnused()
        }
        // Nil too: curl must not keep the pointer of the last one.
        if list != nil || addresses != nil { ccurl_set_pointer(pointer, CURLOPT_RESOLVE, list?.pointer) }
        addresses = list
        // 60 s is curl's default. With our names it keeps none beyond a transfer, and -1 spares it the walk over all of them (7.88); addresses it
        // would keep for ever then.
        let cacheTime = route.isAddressOverridden ? 60 : route.name == nil ? 0 : -1
        if nameCacheTime != cacheTime {
            nameCacheTime = cacheTime
            ccurl_set_long(pointer, CURLOPT_DNS_CACHE_TIMEOUT, cacheTime)
        }
    }

    private func set(_ profile: RequestProfile) {
        self.profile = profile
        let limits = profile.configuration
        ccurl_set_long(pointer, CURLOPT_CONNECTTIMEOUT_MS, Int((limits.connectTimeout * 1000).rounded(.up)))
        ccurl_set_off(pointer, CURLOPT_MAXFILESIZE_LARGE, curl_off_t(AWSChunks.longest(limits.maxBodyBytes)))
    }

    private func set(_ credential: Credential?) {
        self.credential = credential
        let isToken = credential?.scheme == .bearer
        ccurl_set_string(pointer, CURLOPT_USERNAME, isToken ? nil : credential?.user)
        ccurl_set_string(pointer, CURLOPT_PASSWORD, isToken ? nil : credential?.secret)
        ccurl_set_string(pointer, CURLOPT_XOAUTH2_BEARER, isToken ? credential?.secret : nil)
        let scheme =
            switch credential?.scheme {
            case .digest: ccurl_auth_digest()
            case .bearer: ccurl_auth_bearer()
            case .basic, nil: ccurl_auth_basic()
            }
        ccurl_set_long(pointer, CURLOPT_HTTPAUTH, scheme)
    }

    func finish(_ operation: DownloadOperation, code: Int32) -> TransferEnd {
        if code != CURLE_OK.rawValue, response.abort == nil,
            sockets.wasShutDown(operation.request.origin, after: response.progress.hopStart)
        {
            return .failure(.flood(code))
        }
        if let proxy, response.abort == nil, let fault = proxyFault(CURLcode(rawValue: UInt32(bitPattern: code))) {
            return .failure(.unusable(proxy: proxy, fault, code: code))
        }
        return TransferEnd(
            &response, info, of: operation, connecting, code: code,
            text: errorText[0] == 0 ? nil : String(cString: errorText))
    }

    /// Why the proxy, and not the host behind it, let the transfer fail; nil if it did not.
    private func proxyFault(_ code: CURLcode) -> String? {
        // Sockets that could not be made, or were refused, are no fault of the proxy.
        guard connecting.socketErrno == 0, connecting.refusal == nil else { return nil }
        let text = errorText[0] == 0 ? String(cString: curl_easy_strerror(code)) : String(cString: errorText)
        switch code {
        case CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_CONNECT: return text
        case CURLE_OPERATION_TIMEDOUT: return info.isConnected ? nil : text
        case CURLE_PROXY: return CurlInfo.ownProxyErrors.contains(info.proxyError) ? text : nil
        default: return nil
        }
    }

    /// The result of a transfer that exceeded a time limit, if its status is known and its body is not wanted: then the status counts.
    func finishWithoutBody(_ operation: DownloadOperation) -> TransferEnd? {
        guard response.headerIsComplete else { return nil }
        response.judge(info, of: operation)
        guard info.status >= 200, !response.isWanted else { return nil }
        return finish(operation, code: TransferEnd.timedOut)
    }

    func check(now: Double, limits: ImageDownloader.Configuration, dripTime: Double) -> WebImageError? {
        response.check(now: now, limits: limits, dripTime: dripTime)
    }

    /// The downloader or its machine held the transfer back: the time counts neither as silence nor as slowness.
    func wasThrottled(now: Double) { response.wasThrottled(now: now) }

    func end() {
        operation = nil
        isPaused = false
        if let nameEntry { names.didEnd(nameEntry) }
        nameEntry = nil
        // The result owns the body now, or a partial body does.
        response.dropBody()
    }

    /// Resumes a paused transfer; held-back bytes are delivered immediately.
    func goOn() {
        isPaused = false
        curl_easy_pause(pointer, CURLPAUSE_CONT)
    }

    /// Returns the number of bytes accepted; anything less aborts the transfer.
    private func didReceive(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard let operation else { return 0 }
        if !bytes.isEmpty, spooling.holds(self) || bandwidth?.take(bytes.count, on: self) == false {
            isPaused = true
            return Int(CURL_WRITEFUNC_PAUSE)
        }
        if !response.bodyHasBegun {
            response.beginBody(info, of: operation)
            // If the body has no place, its first bytes are refused like any others.
            switch response.abort {
            case .failure, .anotherPart: return 0
            case .unwantedBody, nil: break
            }
            if (200..<300).contains(info.status),
                operation.profile.respectsRobotsTag(of: operation.request, at: operation.site),
                let directive = RobotsTag.refusal(
                    of: info.headers("X-Robots-Tag"), agent: operation.profile.productToken)
            {
                response.refuse(
                    WebImageError(
                        .refused, RobotsTag.message(directive), reason: .robotsTag, httpStatus: info.status))
                return 0
            }
        }
        guard response.isUnpacked else {
            return response.didReceiveBody(bytes, of: operation) && !isDecompressionBomb ? bytes.count : 0
        }
        for start in stride(from: 0, to: bytes.count, by: Self.packedPiece) {
            let piece = UnsafeRawBufferPointer(rebasing: bytes[start..<min(bytes.count, start + Self.packedPiece)])
            guard response.didReceiveBody(piece, of: operation), !isDecompressionBomb else { return 0 }
        }
        return bytes.count
    }

    /// So that a bomb is noticed before it has become all that it can become.
    private static let packedPiece = 4096

    /// Aborts a body that is more than 20 times its size on the wire and larger than 1 MiB: no image compresses that well.
    private var isDecompressionBomb: Bool {
        let unpacked = response.received - response.resumedFrom
        guard unpacked > 1 << 20 else { return false }
        let wire = info.wireBytes
        guard wire > 0, unpacked > 20 * wire else { return false }
        response.refuse(
            WebImageError(
                .tooLarge, "a compressed body of \(wire) bytes is more than 20 times as long unpacked",
                reason: .expansion))
        return true
    }

    /// The only place where connections are opened. The address is checked after name resolution, and no packet is sent to a refused one.
    /// Reused connections were checked by the same policy when they were opened; ``maySend(to:port:)`` checks for places closed since.
    private func openSocket(_ address: UnsafeMutablePointer<curl_sockaddr>?) -> curl_socket_t {
        guard let address, let operation else { return CURL_SOCKET_BAD }
        let place = UnsafeRawPointer(address) + MemoryLayout<curl_sockaddr>.offset(of: \.addr)!
        guard let (target, port) = IPAddress.parse(socketAddress: place) else { return CURL_SOCKET_BAD }
        if !usesProxy, let denial = AddressRefusal(policy, closed, of: target, port: port) {
            connecting.wasRefused(target, port: port, denial)
            return CURL_SOCKET_BAD
        }
        if !isAddressOverridden, let message = policy.refusal(of: target, port: port) {
            connecting.wasRefused(target, port: port, AddressRefusal(closed: message))
            return CURL_SOCKET_BAD
        }
        let kind = address.pointee.socktype | Int32(SOCK_CLOEXEC.rawValue)
        let descriptor = Descriptors.admit(socket(address.pointee.family, kind, address.pointee.protocol))
        if descriptor < 0 {
            connecting.didFail(errno)
        } else {
            connecting.didDial(target, port: port)
            sockets.didOpen(descriptor, to: operation.request.origin)
        }
        return descriptor
    }

    private func maySend(to address: UnsafePointer<CChar>?, port: Int) -> Bool {
        guard operation != nil else { return false }
        if !usesProxy, !closed.isEmpty, let address, let target = IPAddress(String(cString: address)),
            let message = closed.refusal(of: target, port: port)
        {
            response.refuse(WebImageError(.refused, message, reason: .queueRedis))
            return false
        }
        response.willSendRequest()
        return true
    }
}
