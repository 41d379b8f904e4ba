internal import CLinux
internal import Glibc
internal import WebImage

extension PrivateRedisFolder {
    /// A secret that proves that this user has created the folder on this machine.
    private static let originName = "origin"

    /// Opens the data of a cache's private server, and creates the folder if missing. Untrusted data is moved aside first.
    /// - Throws: `cacheUnavailable`, `inputOutput`; `configuration` if there is no list of caches and no trust was given; `notFound` if the
    ///   terms allow neither to use nor to create it; `stopped` when cancelled.
    static func admit(cache: String, _ admission: CacheAdmission) async throws(PrefetchError) -> PrivateRedisFolder {
        let control = try CacheControl(cache: cache)
        var made: CreatedCaches?
        do throws(PrefetchError) { made = try CreatedCaches(admission.state) } catch {
            guard admission.trust != .none else { throw error }
        }
        if let found = try accepted(control, made, admission) { return found }
        guard admission.startsServer else { throw notNamed(control.cache) }
        guard admission.movesAside || admission.trust != .none || !exists(in: control.cache) else {
            throw notCreatedHere(control.cache)
        }
        // One at a time: two commands that find untrusted data must not set aside each other's new folder.
        let lock = try await made?.lock()
        defer { lock?.release() }
        if let found = try accepted(control, made, admission) { return found }
        if let data = try control.folder.folder(name) {
            // Created a moment ago by a command that was killed then.
            let isEmpty = try data.names().allSatisfy { $0.hasPrefix(originName) }
            if isEmpty && PinnedFolder.fault(of: data.status, isFolder: true) == nil || admission.trust != .none {
                return try remembered(control, data, made)
            }
            try setAside(control, data, admission)
        }
        try control.folder.make(name, mode: 0o700)
        guard let data = try control.folder.folder(name) else {
            throw .file("open", "\(control.folder.path)/\(name)")
        }
        return try remembered(control, data, made)
    }

    /// The folder if it exists and can be used as it is.
    private static func accepted(
        _ control: CacheControl, _ made: CreatedCaches?, _ admission: CacheAdmission
    ) throws(PrefetchError) -> PrivateRedisFolder? {
        guard let data = try control.folder.folder(name) else { return nil }
        let status = data.status
        // A folder of another user cannot even be moved aside.
        if status.st_uid != geteuid() {
            throw .notOurs(data.path, PinnedFolder.fault(of: status, isFolder: true) ?? "")
        }
        var isOurs = admission.trust == .standing || admission.trust == .given && made == nil
        if !isOurs, let origin = Self.origin(of: data), let made { isOurs = try made.contains(origin) }
        guard isOurs else { return nil }
        if let fault = PinnedFolder.fault(of: status, isFolder: true) { throw .notOurs(data.path, fault) }
        return try PrivateRedisFolder(cache: control.cache, data: data)
    }

    private static func origin(of data: PinnedFolder) -> String? {
        let text = String(decoding: data.read(originName).prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
        return text.utf8.count == 64 ? text : nil
    }

    /// Writes a new secret, replacing one that others may know, and adds it to the list.
    private static func remembered(
        _ control: CacheControl, _ data: PinnedFolder, _ made: CreatedCaches?
    ) throws(PrefetchError) -> PrivateRedisFolder {
        if let fault = PinnedFolder.fault(of: data.status, isFolder: true) { throw .notOurs(data.path, fault) }
        let folder = try PrivateRedisFolder(cache: control.cache, data: data)
        guard let made else { return folder }
        var random = SystemRandomNumberGenerator()
        let origin = Digest.hex((0..<32).map { _ in random.next() as UInt8 })
        try data.write(origin + "\n", to: originName, isSynced: true)
        fsync(control.folder.descriptor)
        try made.add(origin, path: control.cache)
        return folder
    }

    private static func setAside(
        _ control: CacheControl, _ data: PinnedFolder, _ admission: CacheAdmission
    ) throws(PrefetchError) {
        // It is in use by a process with another list: a container, or another state folder.
        let lock: LockFile?
        do throws(PrefetchError) { lock = try LockFile.takeExisting(lockName, in: data) } catch {
            throw PrefetchError(
                .cacheUnavailable,
                "the private Redis of \(control.cache) is in use, and was not made by this user on this machine",
                hint: "to use it as it is, add --trust-cache")
        }
        defer { lock?.release() }
        let target = "\(name).aside-\(String(UInt32.random(in: 0 ... .max), radix: 16))"
        let folder = control.folder
        guard renameat(folder.descriptor, name, folder.descriptor, target) == 0 else {
            throw .file("move aside", data.path)
        }
        admission.notice(
            "\(control.cache) was not made by this user on this machine, so the queue in it is not used: it is in "
                + "\(folder.path)/\(target) now; to use it, put it back in the place of \(data.path) and add --trust-cache"
        )
    }

    /// The folder was not named by the user, and no server of ours runs for it.
    static func notNamed(_ cache: String) -> PrefetchError {
        PrefetchError(
            .notFound, "\(cache) was not named, so its private Redis is not started",
            hint: "name the folder with --cache, or another Redis with --redis")
    }

    private static func notCreatedHere(_ cache: String) -> PrefetchError {
        PrefetchError(
            .cacheUnavailable, "\(cache) was not made by this user on this machine, so the queue in it is not used",
            hint: "the next command sets it aside and begins a new one; to use it, add --trust-cache")
    }
}
