internal import CCurl
internal import Glibc
internal import Threading

/// A request to a store.
struct S3Request {
    enum Method: String {
        case get = "GET", head = "HEAD", put = "PUT", post = "POST", delete = "DELETE"
    }

    var method: Method
    /// Nil: the bucket itself.
    var key: String?
    /// Sorted by name, as they are signed.
    var query: [(name: String, value: String)] = []
    var headers: [(name: String, value: String)] = []
    /// Has to stay there until the answer.
    var body = UnsafeRawBufferPointer(start: nil, count: 0)
    /// SHA-256 of the body.
    var bodyDigest: String
    /// Seconds; nil: as long as bytes come or go, and it is not cancelled.
    var timeLimit: Int?

    /// Whether a store may need long for it.
    var endsUpload: Bool { method == .post && !body.isEmpty }

    /// For messages.
    var verb: String {
        switch method {
        case .get, .head: "reading"
        case .put, .post: "writing"
        case .delete: query.isEmpty ? "deleting" : "giving up the upload of"
        }
    }
}

struct S3Response {
    var status = 0
    var body: [UInt8] = []
    var etag: String?
    var length: Int?
    /// Of the body, as ``S3Client`` noted it with the object.
    var sha256: String?
    /// Where the bucket is, if it is elsewhere.
    var region: String?
    /// By a key of its own or of a key service.
    var isEncrypted = false
}

/// Handles of libcurl, each with the connections that its requests have left open. One is used by the thread that has taken it.
final class S3Handles: Sendable {
    private let idle = Locked<[SendablePointer]>([])

    deinit { for handle in idle.withLock({ $0 }) { curl_easy_cleanup(handle.pointer) } }

    /// Nil without memory.
    func take() -> SendablePointer? { idle.withLock { $0.popLast() } ?? curl_easy_init().map { SendablePointer($0) } }

    func giveBack(_ handle: SendablePointer) { idle.withLock { $0.append(handle) } }
}

/// A request and its answer. Blocks.
final class S3Exchange {
    /// Why there is no response.
    struct Failure: Error {
        private let code: CURLcode
        let text: String

        fileprivate init(_ code: CURLcode, _ text: String) { (self.code, self.text) = (code, text) }

        static let withoutMemory = Failure(CURLE_OUT_OF_MEMORY, "out of memory")

        /// Whether ``S3Client/cancel()`` has ended it.
        var isAborted: Bool { code == CURLE_ABORTED_BY_CALLBACK }

        /// Whether another try may do better.
        var isRetried: Bool {
            ![
                CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE, CURLE_URL_MALFORMAT, CURLE_OUT_OF_MEMORY,
                CURLE_UNSUPPORTED_PROTOCOL, CURLE_WRITE_ERROR, CURLE_NOT_BUILT_IN,
            ].contains(code)
        }

        var hint: String {
            [CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE].contains(code)
                ? "AWS_CA_BUNDLE names a file with the authority of its certificate" : "see AWS_ENDPOINT_URL"
        }
    }

    /// Of answers: a page of a list has 1,000 keys of 1,024 bytes at most, each of which XML may write six times as long.
    private static let mostBytes = 8 << 20

    private let handle: UnsafeMutableRawPointer
    private let settings: S3Settings
    private let request: S3Request
    /// Seconds; ten times as many where a store puts the parts of an object together.
    private let silenceLimit: Int
    private let isOver: () -> Bool
    private let body: UnsafeRawBufferPointer
    private var sent = 0
    private var received: [UInt8] = []

    /// * `isOver`: asked during a transfer, at least once a second: whether it ends without an answer.
    init(
        _ request: S3Request, over handle: SendablePointer, _ settings: S3Settings, silenceLimit: Int,
        isOver: @escaping () -> Bool
    ) {
        (self.handle, self.settings, self.isOver) = (handle.pointer, settings, isOver)
        self.silenceLimit = silenceLimit
        (self.request, body) = (request, request.body)
    }

    func response(of bucket: String) throws(Failure) -> S3Response {
        guard ccurl_set_string(handle, CURLOPT_AWS_SIGV4, "aws:amz:\(settings.region):s3") == CURLE_OK else {
            throw Failure(CURLE_NOT_BUILT_IN, "this libcurl cannot sign requests to object stores")
        }
        set(settings.address(of: bucket))
        let errorText = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
        errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        ccurl_set_pointer(handle, CURLOPT_ERRORBUFFER, errorText)
        defer {
            // Nothing that a handle keeps is gone before it.
            curl_easy_reset(handle)
            errorText.deallocate()
        }
        var headers: UnsafeMutablePointer<curl_slist>?
        defer { curl_slist_free_all(headers) }
        for (name, value) in fields { headers = curl_slist_append(headers, "\(name): \(value)") ?? headers }
        ccurl_set_pointer(handle, CURLOPT_HTTPHEADER, headers)
        let code = curl_easy_perform(handle)
        guard code == CURLE_OK else {
            throw Failure(
                code, errorText[0] == 0 ? String(cString: curl_easy_strerror(code)) : String(cString: errorText))
        }
        var response = S3Response(status: Int(ccurl_get_long(handle, CURLINFO_RESPONSE_CODE)), body: received)
        response.etag = field("ETag")
        response.sha256 = field(S3Client.digestHeader)
        response.region = field("x-amz-bucket-region")
        response.isEncrypted =
            field("x-amz-server-side-encryption").map { $0 != "AES256" } ?? false
            || field("x-amz-server-side-encryption-customer-algorithm") != nil
        let length = ccurl_get_off(handle, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T)
        response.length = length >= 0 ? Int(length) : nil
        return response
    }

    /// What is signed beside the host and the time.
    private var fields: [(name: String, value: String)] {
        var fields = request.headers
        fields.append(("x-amz-content-sha256", request.bodyDigest))
        if let token = settings.sessionToken { fields.append(("x-amz-security-token", token)) }
        return fields
    }

    private func set(_ bucket: String) {
        let context = Unmanaged.passUnretained(self).toOpaque()
        var url = bucket + "/" + (request.key.map { S3Location.encoded($0, keeping: UInt8(ascii: "/")) } ?? "")
        if !request.query.isEmpty {
            // A name without a value is signed with the sign of equality.
            url += "?" + request.query.map { "\($0.name)=\(S3Location.encoded($0.value))" }.joined(separator: "&")
        }
        ccurl_set_string(handle, CURLOPT_URL, url)
        ccurl_set_long(handle, CURLOPT_PATH_AS_IS, 1)
        ccurl_set_string(handle, CURLOPT_USERNAME, settings.accessKey)
        ccurl_set_string(handle, CURLOPT_PASSWORD, settings.secretKey)
        ccurl_set_long(handle, CURLOPT_NOSIGNAL, 1)
        ccurl_set_string(handle, CURLOPT_PROTOCOLS_STR, "http,https")
        ccurl_set_long(handle, CURLOPT_FOLLOWLOCATION, 0)
        ccurl_set_long(handle, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1)
        ccurl_set_long(handle, CURLOPT_CONNECTTIMEOUT_MS, 10_000)
        ccurl_set_long(handle, CURLOPT_LOW_SPEED_LIMIT, 1)
        ccurl_set_long(handle, CURLOPT_LOW_SPEED_TIME, request.endsUpload ? 10 * silenceLimit : silenceLimit)
        ccurl_set_long(handle, CURLOPT_UPLOAD_BUFFERSIZE, 1 << 20)
        if let file = settings.caFile { ccurl_set_string(handle, CURLOPT_CAINFO, file) }
        ccurl_set_write(handle, CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
            S3Exchange.from(context).take(UnsafeRawBufferPointer(start: bytes, count: size * count))
        }
        ccurl_set_pointer(handle, CURLOPT_WRITEDATA, context)
        if let seconds = request.timeLimit {
            ccurl_set_long(handle, CURLOPT_TIMEOUT_MS, seconds * 1_000)
        } else {
            ccurl_set_progress(
                handle, { context, _, _, _, _ in S3Exchange.from(context).isOver() ? 1 : 0 }, context)
        }
        ccurl_set_body(
            handle,
            { buffer, size, count, context in
                S3Exchange.from(context).give(UnsafeMutableRawBufferPointer(start: buffer, count: size * count))
            },
            { context, offset, origin in S3Exchange.from(context).seek(Int(offset), origin) }, context)
        switch request.method {
        case .get: break
        case .head: ccurl_set_long(handle, CURLOPT_NOBODY, 1)
        case .delete: ccurl_set_string(handle, CURLOPT_CUSTOMREQUEST, "DELETE")
        case .put:
            ccurl_set_long(handle, CURLOPT_UPLOAD, 1)
            ccurl_set_off(handle, CURLOPT_INFILESIZE_LARGE, curl_off_t(request.body.count))
        case .post:
            ccurl_set_long(handle, CURLOPT_POST, 1)
            ccurl_set_off(handle, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(request.body.count))
        }
    }

    private static func from(_ context: UnsafeMutableRawPointer?) -> S3Exchange {
        Unmanaged<S3Exchange>.fromOpaque(context!).takeUnretainedValue()
    }

    private func take(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard received.count + bytes.count <= Self.mostBytes else { return 0 }
        received += bytes
        return bytes.count
    }

    private func give(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(buffer.count, body.count - sent)
        if count > 0 { buffer.baseAddress!.copyMemory(from: body.baseAddress! + sent, byteCount: count) }
        sent += count
        return count
    }

    /// A body begins again where curl sends it a second time over a new connection.
    private func seek(_ offset: Int, _ origin: Int32) -> Int32 {
        guard origin == SEEK_SET, (0...body.count).contains(offset) else { return CURL_SEEKFUNC_FAIL }
        sent = offset
        return CURL_SEEKFUNC_OK
    }

    private func field(_ name: String) -> String? {
        var header: UnsafeMutablePointer<curl_header>?
        guard curl_easy_header(handle, name, 0, UInt32(CURLH_HEADER), -1, &header) == CURLHE_OK, let header else {
            return nil
        }
        return String(cString: header.pointee.value)
    }
}
