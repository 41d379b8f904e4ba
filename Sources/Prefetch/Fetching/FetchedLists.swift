internal import CLinux
internal import Glibc
internal import WebImage

/// The files that lists with an address were fetched into: `fetched/HOST-DIGEST/NAME` in the folder of a user's state, with the validators of
/// each in an attribute. One that has not been read for 90 days is removed when another list is fetched.
struct FetchedLists {
    private static let lifetime = 90 * 86_400
    private static let attribute = "user.prefetch.validators"
    private static let longestName = 100

    private let folder: PinnedFolder

    /// - Throws: `cacheUnavailable` if the folder cannot be made, or is not private to this user.
    init(in state: StateFolder) throws(PrefetchError) {
        let parent = try state.open()
        try parent.make("fetched", mode: 0o700)
        guard let folder = try parent.folder("fetched") else { throw .file("open", "\(parent.path)/fetched") }
        if let fault = PinnedFolder.fault(of: folder.status, isFolder: true) { throw .notOurs(folder.path, fault) }
        self.folder = folder
    }

    /// Where the list of an address is.
    struct Place {
        let folder: OpenFolder
        let path: String
        let name: String
    }

    /// * `url`: what is requested.
    /// - Throws: `inputOutput`.
    func place(of url: String) throws(PrefetchError) -> Place {
        let digest = SHA256.hash(Array(url.utf8)).hex.prefix(32)
        let host = (try? RequestURL(url))?.host ?? "list"
        let own = "\(Self.name(host))-\(digest)"
        guard let parent = OpenFolder(folder.path), let inside = OpenFolder(own, in: parent) else {
            throw .file("make", "\(folder.path)/\(own)")
        }
        let end = url.utf8.firstIndex { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") } ?? url.endIndex
        // Of https://host/ there is only the host.
        let last = url[..<end].dropFirst(8).split(separator: "/").dropFirst().last.map(String.init)
        let name = Self.name(last ?? "list")
        return Place(folder: inside, path: "\(folder.path)/\(own)/\(name)", name: name)
    }

    /// A name that says nothing else to a shell, a terminal or a file system. The end of a long one stays: it tells the format.
    private static func name(_ text: String) -> String {
        let kept = text.utf8.map { byte -> Character in
            let isPlain =
                (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
                || "-._".utf8.contains(byte)
            return isPlain ? Character(UnicodeScalar(byte)) : "_"
        }.suffix(longestName).drop { $0 == "." }
        return kept.isEmpty ? "list" : String(kept)
    }

    /// The validators of the file that is there; nil if there is none, without any if nobody knows them.
    func validators(of place: Place) -> HTTPValidators? {
        let file = clinux_open_beneath(place.folder.descriptor, place.name, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0, PinnedFolder.fault(of: status) == nil else { return nil }
        // The time of its last use.
        futimens(file, nil)
        var bytes = [UInt8](repeating: 0, count: 4_096)
        let count = fgetxattr(file, Self.attribute, &bytes, bytes.count)
        return HTTPValidators(bytes.prefix(max(0, count))) ?? HTTPValidators()
    }

    /// Gives a file that was fetched its name, and its validators before.
    /// - Throws: `inputOutput`.
    func publish(_ file: TemporaryFile, at place: Place, _ validators: HTTPValidators) throws(PrefetchError) {
        let bytes = validators.encoded
        // Where the file system has no attributes, it is fetched again each time.
        fsetxattr(file.descriptor, Self.attribute, bytes, bytes.count, 0)
        fchmod(file.descriptor, 0o600)
        let code = fsync(file.descriptor) == 0 ? file.publish(replacing: place.name) : errno
        guard code == 0 else {
            errno = code
            throw .file("write", place.path)
        }
    }

    /// Removes what has not been read for long.
    func removeOld() {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        for name in (try? folder.names()) ?? [] {
            guard let inside = try? folder.folder(name), let files = try? inside.names() else { continue }
            for file in files {
                var status = stat()
                guard fstatat(inside.descriptor, file, &status, AT_SYMLINK_NOFOLLOW) == 0,
                    status.st_mode & S_IFMT == S_IFREG, now.tv_sec - status.st_mtim.tv_sec > Self.lifetime
                else { continue }
                unlinkat(inside.descriptor, file, 0)
            }
            // Fails while there is a file in it.
            unlinkat(folder.descriptor, name, AT_REMOVEDIR)
        }
    }
}
