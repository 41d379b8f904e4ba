internal import FoundationEssentials
internal import Glibc
internal import Threading
package import WebImage

/// What a store has under a key.
package struct S3Object: Sendable, Equatable {
    package var size: Int
    /// Of the content: MD5 of what was put in one request, without its quotes.
    package var etag: String?
    /// Of the content, if this client has put it; lists do not say it.
    package var sha256: String?

    package init(size: Int, etag: String? = nil, sha256: String? = nil) {
        (self.size, self.etag, self.sha256) = (size, etag, sha256)
    }
}

/// A bucket: whole objects are put into it, read, listed and deleted. Each request is tried again if the store or the way to it fails. Blocks;
/// may be used by several threads.
///
/// Requests are signed by libcurl (CURLOPT_AWS_SIGV4). A store is told the SHA-256 and the MD5 of what it is given, and its ETag is compared: not all
/// look at the first, which is signed.
package final class S3Client: Sendable {
    /// Kept with an object: SHA-256 of its content in hexadecimal.
    static let digestHeader = "x-amz-meta-sha256"
    private static let emptyDigest = SHA256.hash([]).hex
    /// Longer contents are put in parts of this length, each of which is tried again alone. All are equal, as some stores ask for.
    package static let partSize = 64 << 20
    /// At most so many: OpenStack Swift takes no more, AWS ten times as many.
    private static let mostParts = 1_000

    package let location: S3Location
    private let sender: S3Sender
    /// Whether the store takes `If-None-Match` for what is put. Some that take it do not look at it.
    private let takesConditions = Locked(true)

    /// * `notice`: called with a sentence before a request is tried again, on the thread that waits.
    package init(
        _ location: S3Location, _ settings: S3Settings, retries: S3Retries = .patient,
        notice: @escaping @Sendable (String) -> Void = { _ in }
    ) {
        self.location = location
        sender = S3Sender(location, settings, retries, notice)
    }

    /// Ends requests in flight after the time that ``S3Retries`` gives them, and tries none again. Those that come later throw `cancelled`.
    package func cancel() { sender.cancel() }

    // MARK: Objects

    /// Nil if there is none.
    /// - Throws: `refused`, `unavailable`, `cancelled`, as all of these.
    package func head(_ name: String) throws(S3Error) -> S3Object? {
        let response = try sender.send(request(.head, name), isAbsenceAnswer: true)
        guard response.status != 404 else { return nil }
        return S3Object(size: response.length ?? 0, etag: Self.unquoted(response.etag), sha256: response.sha256)
    }

    /// The object if it has the bytes of a file: by their SHA-256, which was noted when it was put, and by their MD5 if the store says it.
    /// * `digest`: SHA-256 of the file.
    package func object(
        _ name: String, of file: Int32, size: Int, digest: Digest
    ) throws(S3Error) -> S3Object? {
        let response = try sender.send(request(.head, name), isAbsenceAnswer: true)
        guard response.status != 404, response.length == size,
            response.sha256?.asciiLowercased.hasBytes(of: digest.hex) == true
        else { return nil }
        let object = S3Object(size: size, etag: Self.unquoted(response.etag), sha256: digest.hex)
        guard size <= Self.partSize else { return object }
        return try Self.withBytes(of: file, 0..<size) { bytes throws(S3Error) in
            Self.fault(of: response, SHA256.md5(bytes)) == nil ? object : nil
        }
    }

    /// The content of an object of 8 MiB at most; nil if there is none.
    package func get(_ name: String) throws(S3Error) -> [UInt8]? {
        let response = try sender.send(request(.get, name), isAbsenceAnswer: true)
        return response.status == 404 ? nil : response.body
    }

    /// One that is not there does no harm.
    package func delete(_ name: String) throws(S3Error) {
        _ = try sender.send(request(.delete, name), isAbsenceAnswer: true)
    }

    /// The objects of the location, without those whose names have a further slash.
    package func list() throws(S3Error) -> [(name: ByteText, object: S3Object)] {
        var found: [(name: ByteText, object: S3Object)] = []
        var token: String?
        repeat {
            let page = try list(most: 1_000, after: token)
            for element in page.elements("Contents") {
                // Keys are compared by their last name alone, which for a file of a shard is ASCII, however the rest is written.
                guard let key = element.value("Key"), let size = element.value("Size").flatMap({ Int($0) }) else {
                    continue
                }
                let name = key.split(separator: "/", omittingEmptySubsequences: false).last ?? ""
                let object = S3Object(size: size, etag: Self.unquoted(element.value("ETag")))
                found.append((ByteText(String(name)), object))
            }
            let next = page.value("IsTruncated") == "true" ? page.value("NextContinuationToken") : nil
            // A store that does not go on would be asked for ever.
            guard next == nil || next != token else {
                throw S3Error(.unavailable, "\(location.text) lists the same names again and again")
            }
            token = next
        } while token != nil
        return found
    }

    private func list(most: Int, after token: String?) throws(S3Error) -> S3Answer {
        var request = S3Request(method: .get, bodyDigest: Self.emptyDigest)
        if let token { request.query.append(("continuation-token", token)) }
        request.query += [("delimiter", "/"), ("list-type", "2"), ("max-keys", "\(most)"), ("prefix", location.prefix)]
        let response = try sender.send(request)
        let answer = S3Answer(response.body)
        guard answer.value("IsTruncated") != nil else {
            throw S3Error(
                .configuration, "\(sender.address) does not answer as an object store",
                hint: "AWS_ENDPOINT_URL is the address of its S3 interface")
        }
        return answer
    }

    /// Finds out whether the bucket can be listed, and an object be put, which leaves none.
    /// * `name`: of an object.
    package func checkAccess(_ name: String) throws(S3Error) {
        _ = try list(most: 1, after: nil)
        _ = try head(name)
        let upload = try beginUpload(name, digest: nil)
        try endUpload(name, upload)
    }

    // MARK: Putting

    /// Puts a file as an object; it is there whole when this returns, in the place of another one.
    /// * `digest`: SHA-256 of its bytes; `isNew`: whether it is put only where no object is, if the store knows that, and it is not put in parts.
    /// - Throws: also `taken`.
    /// - Returns: its ETag; nil of one in parts.
    @discardableResult
    package func put(
        _ file: Int32, size: Int, digest: Digest, as name: String, isNew: Bool = false
    ) throws(S3Error) -> String? {
        guard size > Self.partSize else {
            return try Self.withBytes(of: file, 0..<size) { bytes throws(S3Error) in
                try put(bytes, as: name, digest.hex, isNew: isNew)
            }
        }
        let upload = try beginUpload(name, digest: digest.hex)
        do throws(S3Error) {
            try finish(upload, name, try parts(of: file, size, upload, name), size: size, digest: digest.hex)
            return nil
        } catch {
            // It would be kept, and paid for, without being seen.
            do throws(S3Error) { try endUpload(name, upload) } catch {
                sender.notice("parts of \(shown(name)) stay in the store: \(error.message)")
            }
            throw error
        }
    }

    private func put(
        _ bytes: UnsafeRawBufferPointer, as name: String, _ digest: String, isNew: Bool
    ) throws(S3Error) -> String? {
        var request = request(.put, name, body: bytes, digest: digest)
        request.headers = [("Content-Type", Self.contentType(name)), (Self.digestHeader, digest)]
        if isNew, takesConditions.withLock({ $0 }) {
            var conditional = request
            conditional.headers.append(("If-None-Match", "*"))
            var hasStored = false
            do throws(S3Error) {
                return Self.unquoted(try send(conditional, of: bytes) { hasStored = true }.etag)
            } catch {
                // Those that do not know the condition say so in different ways: without it the store has the word.
                guard error.kind == .refused || error.kind == .taken && hasStored else { throw error }
                let etag = try send(request, of: bytes).etag
                if error.kind == .refused { takesConditions.withLock { $0 = false } }
                return Self.unquoted(etag)
            }
        }
        return Self.unquoted(try send(request, of: bytes).etag)
    }

    private func parts(
        of file: Int32, _ size: Int, _ upload: String, _ name: String
    ) throws(S3Error) -> [(number: Int, etag: String)] {
        let pages = Self.partSize
        let length = max(1, (size + Self.mostParts * pages - 1) / (Self.mostParts * pages)) * pages
        var parts: [(number: Int, etag: String)] = []
        for start in stride(from: 0, to: size, by: length) {
            let number = parts.count + 1
            let etag = try Self.withBytes(of: file, start..<min(size, start + length)) { bytes throws(S3Error) in
                var request = request(.put, name, body: bytes, digest: SHA256.hash(bytes).hex)
                request.query = [("partNumber", "\(number)"), ("uploadId", upload)]
                return try send(request, of: bytes).etag
            }
            guard let etag else { throw S3Error(.unavailable, "\(shown(name)): the store gave part \(number) no ETag") }
            parts.append((number, etag))
        }
        return parts
    }

    private func beginUpload(_ name: String, digest: String?) throws(S3Error) -> String {
        var request = request(.post, name)
        request.query = [("uploads", "")]
        request.headers = [("Content-Type", Self.contentType(name))]
        if let digest { request.headers.append((Self.digestHeader, digest)) }
        let response = try sender.send(request)
        guard let upload = S3Answer(response.body).value("UploadId") else {
            throw S3Error(.unavailable, "\(shown(name)): the store began no upload in parts")
        }
        return upload
    }

    private func finish(
        _ upload: String, _ name: String, _ parts: [(number: Int, etag: String)], size: Int, digest: String
    ) throws(S3Error) {
        let list = parts.map { "<Part><PartNumber>\($0.number)</PartNumber><ETag>\($0.etag)</ETag></Part>" }.joined()
        let bytes = Array("<CompleteMultipartUpload>\(list)</CompleteMultipartUpload>".utf8)
        try bytes.span.withUnsafeBytes { bytes throws(S3Error) in
            var request = request(.post, name, body: bytes, digest: SHA256.hash(bytes).hex)
            request.query = [("uploadId", upload)]
            request.headers = [("Content-Type", "application/xml")]
            // The status is sent before the parts are put together.
            let response = try sender.send(request, isAbsenceAnswer: true) { response in
                response.status == 404 ? nil : S3Answer(response.body).value("Code")
            }
            guard response.status == 404 else { return }
            // An answer that was lost may have been that it is done.
            let object = try head(name)
            guard object?.size == size, object?.sha256?.asciiLowercased.hasBytes(of: digest) == true else {
                throw S3Error(.unavailable, "cannot write \(shown(name)): the store no longer has its parts")
            }
        }
    }

    private func endUpload(_ name: String, _ upload: String) throws(S3Error) {
        var request = request(.delete, name)
        request.query = [("uploadId", upload)]
        // Also after a cancellation.
        request.timeLimit = 5
        _ = try sender.send(request, isAbsenceAnswer: true)
    }

    /// The bytes of a file, which nobody shortens meanwhile.
    private static func withBytes<Result>(
        of file: Int32, _ range: Range<Int>, _ body: (UnsafeRawBufferPointer) throws(S3Error) -> Result
    ) throws(S3Error) -> Result {
        guard !range.isEmpty else { return try body(UnsafeRawBufferPointer(start: nil, count: 0)) }
        guard let memory = mmap(nil, range.count, PROT_READ, MAP_PRIVATE, file, off_t(range.lowerBound)),
            memory != MAP_FAILED
        else { throw S3Error(.unavailable, "cannot read what is to be stored: \(String(cString: strerror(errno)))") }
        defer { munmap(memory, range.count) }
        return try body(UnsafeRawBufferPointer(start: memory, count: range.count))
    }

    private static func contentType(_ name: String) -> String {
        switch name.split(separator: ".").last {
        case "tar": "application/x-tar"
        case "json": "application/json"
        case "parquet": "application/vnd.apache.parquet"
        default: "application/octet-stream"
        }
    }

    private static func unquoted(_ etag: String?) -> String? { etag?.replacing("\"", with: "") }

    // MARK: Requests

    private func request(
        _ method: S3Request.Method, _ name: String,
        body: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0), digest: String? = nil
    ) -> S3Request {
        S3Request(method: method, key: location.key(of: name), body: body, bodyDigest: digest ?? Self.emptyDigest)
    }

    private func shown(_ name: String) -> String { "\(location.text)/\(name)" }

    /// Puts bytes, which are compared with those that the store has.
    /// * `onFault`: called when the store has stored others.
    private func send(
        _ request: S3Request, of bytes: UnsafeRawBufferPointer, onFault: () -> Void = {}
    ) throws(S3Error) -> S3Response {
        // This machine's OpenSSL may have none.
        let digest = SHA256.md5(bytes)
        var request = request
        if let digest { request.headers.append(("Content-MD5", Data(digest).base64EncodedString())) }
        return try sender.send(request) { response in
            let fault = Self.fault(of: response, digest)
            if fault != nil { onFault() }
            return fault
        }
    }

    /// What is wrong with the bytes that a store has, by its ETag.
    /// * `digest`: MD5 of what it has to have; nil: this machine has none.
    private static func fault(of response: S3Response, _ digest: [UInt8]?) -> String? {
        // With keys of a key service the ETag is no MD5.
        guard let digest, !response.isEncrypted, let etag = unquoted(response.etag), etag.utf8.count == 32
        else { return nil }
        let isSame = etag.asciiLowercased.hasBytes(of: Digest.hex(digest))
        return isSame ? nil : "the store has other bytes than were sent"
    }
}
