internal import Glibc
internal import WebImage

/// The caches this user has created on this machine: the file `caches` of the state folder has a line for each, with a digest of its
/// origin, which is a secret in the cache, and its path at that time.
///
/// The owner of a file proves nothing, since unpacking an archive sets it; and every user of the queue knows the id of a cache. The proof
/// is 32 random bytes in a file that no other user can read.
struct CreatedCaches: Sendable {
    /// Beyond this, entries of caches that are gone are dropped, then the oldest ones.
    private static let most = 10_000
    private static let name = "caches"

    private let folder: PinnedFolder

    init(_ state: StateFolder) throws(PrefetchError) { folder = try state.open() }

    func contains(_ origin: String) throws(PrefetchError) -> Bool {
        let digest = Self.digest(origin)[...]
        return try lines().contains { $0.prefix { $0 != " " } == digest }
    }

    /// Waits until no other process changes the list, or a cache that is not in it; 10 s at most.
    func lock() async throws(PrefetchError) -> LockFile {
        let deadline = ContinuousClock.now + .seconds(10)
        while true {
            if let lock = try LockFile.take(Self.name + ".lock", in: folder) { return lock }
            guard ContinuousClock.now < deadline else {
                throw PrefetchError(
                    .stopped, "another process has held \(folder.path)/\(Self.name).lock for 10 s",
                    hint: "find it with: fuser '\(folder.path)/\(Self.name).lock'")
            }
            do {
                try await Task.sleep(for: .milliseconds(5))
            } catch {
                throw PrefetchError(.stopped, "stopped while another process was making a cache")
            }
        }
    }

    /// Adds a cache. Only under ``lock()``.
    func add(_ origin: String, path: String) throws(PrefetchError) {
        // A path may have line ends.
        let shown = path.unicodeScalars.map { $0.value < 32 || $0.value == 127 ? "?" : String($0) }.joined()
        var lines = try lines() + ["\(Self.digest(origin)) \(shown)"]
        if lines.count > Self.most {
            lines = lines.filter { line in
                access(String(line.drop { $0 != " " }.dropFirst()), F_OK) == 0 || line == lines.last
            }
            lines = lines.suffix(Self.most)
        }
        try folder.write(lines.map { $0 + "\n" }.joined(), to: Self.name, isSynced: true)
    }

    private func lines() throws(PrefetchError) -> [String] {
        let file = try folder.open(Self.name, O_RDONLY)
        guard file >= 0 else { return [] }
        defer { close(file) }
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = Glibc.read(file, &piece, piece.count)
            if count < 0 && errno == EINTR { continue }
            guard count >= 0 else { throw .file("read", "\(folder.path)/\(Self.name)") }
            if count == 0 { break }
            bytes += piece[..<count]
        }
        return String(decoding: bytes, as: UTF8.self).split(atByte: "\n").map(String.init)
    }

    private static func digest(_ origin: String) -> String {
        let hasher = SHA256Hasher()
        Array(origin.utf8).withUnsafeBytes { hasher.update($0) }
        return hasher.finishedHex()
    }
}
