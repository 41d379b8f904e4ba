internal import Glibc
internal import ObjectStore
internal import Threading
internal import WebImage

/// A bucket of shards, or a prefix in one. Files are made in the folder for temporary ones, and put when they are whole.
final class ShardBucket: ShardPlace {
    private let client: S3Client
    private let folder: OpenFolder
    private let folderPath: String
    /// What is there, as far as this process knows: others may have put more meanwhile. Nil: not asked yet.
    private let objects = Locked<[ByteText: S3Object]?>(nil)
    /// What was compared with its files.
    private let stored = Locked<[ByteText: S3Object]>([:])
    private let notice: @Sendable (String) -> Void
    private let hasKeptMark = Locked(false)

    /// - Throws: `configuration` (78).
    init(_ address: String, retries: S3Retries, notice: @escaping @Sendable (String) -> Void) throws(PrefetchError) {
        self.notice = notice
        do throws(S3Error) {
            client = S3Client(
                try S3Location(address), try S3Settings(variable: Self.variable, file: Self.file), retries: retries,
                notice: notice)
        } catch {
            throw PrefetchError(error)
        }
        // A shard may be longer than what a /tmp in memory can have.
        folderPath = Self.variable("TMPDIR").flatMap { $0.isEmpty ? nil : $0 } ?? "/var/tmp"
        guard let folder = OpenFolder(folderPath) else { throw Self.refused(folderPath, errno) }
        self.folder = folder
    }

    private static func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

    private static func file(_ path: String) -> [UInt8]? {
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 1 << 20)
        let count = pread(descriptor, &bytes, bytes.count, 0)
        return count < 0 ? nil : Array(bytes.prefix(count))
    }

    var shown: String { client.location.text }

    private static func refused(_ path: String, _ code: Int32) -> PrefetchError {
        PrefetchError(
            .cacheUnavailable, "cannot make files in \(path): \(String(cString: strerror(code)))",
            hint: "TMPDIR names a folder with room for a shard")
    }

    func failed(_ name: String, _ code: Int32) -> PrefetchError {
        PrefetchError(
            .inputOutput, "cannot write \(name) in \(folderPath): \(String(cString: strerror(code)))",
            hint: "TMPDIR names a folder with room for a shard")
    }

    func checkAccess() throws(PrefetchError) {
        guard TemporaryFile(in: folder) != nil else { throw Self.refused(folderPath, errno) }
        do throws(S3Error) { try client.checkAccess(ShardLayout.name(0) + ".tar") } catch {
            throw PrefetchError(error, isBefore: true)
        }
    }

    // MARK: What is there

    func names() throws(PrefetchError) -> [String] { try known().keys.map(\.text) }

    func size(of name: String) throws(PrefetchError) -> Int? {
        if let known = try known()[ByteText(name)] { return known.size }
        return try head(name)?.size
    }

    func bytes(of name: String, most: Int) throws(PrefetchError) -> [UInt8]? {
        if let size = try known()[ByteText(name)]?.size, size > most { return nil }
        return try asking { client throws(S3Error) in try client.get(name) }
    }

    func has(_ name: String, sameAs other: TemporaryFile) throws(PrefetchError) -> Bool {
        guard let (size, digest) = Self.content(of: other) else { return false }
        let object = try asking { client throws(S3Error) in
            try client.object(name, of: other.descriptor, size: size, digest: digest)
        }
        stored.withLock { $0[ByteText(name)] = object }
        return object != nil
    }

    /// Asks the store.
    private func head(_ name: String) throws(PrefetchError) -> S3Object? {
        let object = try asking { client throws(S3Error) in try client.head(name) }
        objects.withLock { $0?[ByteText(name)] = object }
        return object
    }

    private func known() throws(PrefetchError) -> [ByteText: S3Object] {
        if let known = objects.withLock({ $0 }) { return known }
        let listed = try listed()
        objects.withLock { $0 = listed }
        return listed
    }

    private func listed() throws(PrefetchError) -> [ByteText: S3Object] {
        let list = try asking { client throws(S3Error) in try client.list() }
        return Dictionary(list.map { ($0.name, $0.object) }) { $1 }
    }

    private static func content(of file: TemporaryFile) -> (size: Int, digest: Digest)? {
        var (hash, size) = (SHA256(), 0)
        var buffer = [UInt8](repeating: 0, count: 1 << 20)
        while true {
            let count = pread(file.descriptor, &buffer, buffer.count, off_t(size))
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return count == 0 ? (size, hash.finalize()) : nil }
            buffer.withUnsafeBytes { hash.update(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
            size += count
        }
    }

    // MARK: What is put

    func newFile(_ name: String) throws(PrefetchError) -> TemporaryFile {
        guard let file = TemporaryFile(in: folder) else { throw failed(name, errno) }
        return file
    }

    func put(_ file: TemporaryFile, as name: String, replaces: Bool) throws(PrefetchError) {
        guard let (size, digest) = Self.content(of: file) else { throw failed(name, errno) }
        /// Another run of the same list may have put it since it was looked for, or an answer was lost.
        func isThere() throws(PrefetchError) -> Bool {
            guard try head(name) != nil else { return false }
            if try has(name, sameAs: file) { return true }
            throw ImageFolder.taken("\(shown)/\(name)")
        }
        if !replaces, try isThere() { return }
        let etag: String?
        do throws(S3Error) {
            etag = try client.put(file.descriptor, size: size, digest: digest, as: name, isNew: !replaces)
        } catch {
            if error.kind == .taken, try isThere() { return }
            throw PrefetchError(error)
        }
        objects.withLock { $0?[ByteText(name)] = S3Object(size: size, etag: etag, sha256: digest.hex) }
    }

    func delete(_ name: String) {
        guard objects.withLock({ $0?[ByteText(name)] != nil }) else { return }
        do throws(S3Error) { try client.delete(name) } catch {
            let isFirst = hasKeptMark.withLock { kept in !(kept, kept = true).0 }
            if isFirst, error.kind != .cancelled { notice("hidden objects stay in \(shown): \(error.message)") }
        }
        objects.withLock { $0?[ByteText(name)] = nil }
        stored.withLock { $0[ByteText(name)] = nil }
    }

    func checkStored() throws(PrefetchError) {
        let stored = stored.withLock { $0 }
        guard !stored.isEmpty else { return }
        let listed = try listed()
        let wrong = stored.filter { name, object in
            guard let there = listed[name], there.size == object.size else { return true }
            // One in parts has another ETag, and one by a key service may have.
            guard let own = object.etag, let other = there.etag else { return false }
            return !own.hasBytes(of: other)
        }.keys.min()
        guard let wrong else { return }
        throw PrefetchError(
            .inputOutput, "\(shown)/\(wrong) is not there any more as it was stored",
            hint: "another program changes this prefix; run it again: what is missing is written again")
    }

    func cancel() { client.cancel() }

    private func asking<Result>(
        _ body: (S3Client) throws(S3Error) -> Result
    ) throws(PrefetchError) -> Result {
        do throws(S3Error) { return try body(client) } catch { throw PrefetchError(error) }
    }
}

extension PrefetchError {
    /// * `isBefore`: whether nothing was put yet.
    init(_ error: S3Error, isBefore: Bool = false) {
        let kind: Kind =
            switch error.kind {
            case .configuration: .configuration
            case .refused, .unavailable, .taken: isBefore ? .cacheUnavailable : .inputOutput
            case .cancelled: .stopped
            }
        self.init(kind, error.message, hint: error.hint)
    }
}
