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
    /// Bytes of what it has put.
    private let stored = Locked<[ByteText: Int]>([:])

    /// - Throws: `configuration` (78).
    init(_ address: String, retries: S3Retries, notice: @escaping @Sendable (String) -> Void) throws(PrefetchError) {
        do throws(S3Error) {
            client = S3Client(
                try S3Location(address), try S3Settings(variable: Self.variable, file: Self.file), retries: retries,
                notice: notice)
        } catch {
            throw PrefetchError(error)
        }
        // A shard may be longer than what a /tmp in memory can have.
        folderPath = Self.variable("TMPDIR").flatMap { $0.isEmpty ? nil : $0 } ?? "/var/tmp"
        guard let folder = OpenFolder(folderPath) else { throw ImageFolder.refused(folderPath, errno) }
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

    func checkAccess() throws(PrefetchError) {
        guard TemporaryFile(in: folder) != nil else { throw ImageFolder.refused(folderPath, errno) }
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
        guard let object = try head(name), let (size, digest) = Self.content(of: other) else { return false }
        return object.size == size && object.sha256?.asciiLowercased == digest.hex
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
        guard let file = TemporaryFile(in: folder) else {
            throw PrefetchError(
                .inputOutput, "cannot make a file in \(folderPath): \(String(cString: strerror(errno)))",
                hint: "TMPDIR names a folder with room for a shard")
        }
        return file
    }

    func put(_ file: TemporaryFile, as name: String, replaces: Bool) throws(PrefetchError) {
        guard let (size, digest) = Self.content(of: file) else { throw failed(name, errno) }
        if !replaces, try head(name) != nil { throw ImageFolder.taken("\(shown)/\(name)") }
        try asking { client throws(S3Error) in
            try client.put(file.descriptor, size: size, digest: digest, as: name)
        }
        objects.withLock { $0?[ByteText(name)] = S3Object(size: size, sha256: digest.hex) }
        stored.withLock { $0[ByteText(name)] = size }
    }

    func delete(_ name: String) {
        guard objects.withLock({ $0?[ByteText(name)] != nil }) else { return }
        try? client.delete(name)
        objects.withLock { $0?[ByteText(name)] = nil }
        stored.withLock { $0[ByteText(name)] = nil }
    }

    func checkStored() throws(PrefetchError) {
        let stored = stored.withLock { $0 }
        guard !stored.isEmpty else { return }
        let listed = try listed()
        guard let wrong = stored.filter({ listed[$0.key]?.size != $0.value }).keys.min() else { return }
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
            case .refused, .unavailable: isBefore ? .cacheUnavailable : .inputOutput
            case .cancelled: .stopped
            }
        self.init(kind, error.message, hint: error.hint)
    }
}
