internal import Glibc

/// The names of hosts(5), read again when the file has changed, which is looked at every ten seconds.
struct HostsFile {
    static let interval = 10.0
    /// Bytes that are read of it.
    private static let most = 16 << 20
    private let path: String
    private var names: [ByteText: [IPAddress]] = [:]
    private var version = FileVersion.none
    private var nextCheck = -Double.infinity

    init(path: String = "/etc/hosts") { self.path = path }

    /// * `name`: in lower case, without a final dot.
    mutating func addresses(of name: String, now: Double) -> [IPAddress]? {
        if now >= nextCheck {
            nextCheck = now + Self.interval
            let current = FileVersion(of: path)
            if current != version {
                version = current
                names = Self.parse(Self.read(path))
            }
        }
        return names[name]
    }

    private static func read(_ path: String) -> [UInt8] {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return [] }
        defer { close(file) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while bytes.count < most {
            let count = Glibc.read(file, &buffer, buffer.count)
            guard count > 0 else { break }
            bytes += buffer[..<count]
        }
        return bytes
    }

    static func parse(_ bytes: [UInt8]) -> [ByteText: [IPAddress]] {
        var names: [ByteText: [IPAddress]] = [:]
        for line in bytes.split(separator: UInt8(ascii: "\n")) {
            let words = line.prefix { $0 != UInt8(ascii: "#") }
                .split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") || $0 == UInt8(ascii: "\r") }
            guard words.count > 1, let address = IPAddress(String(decoding: words[0], as: UTF8.self)) else { continue }
            for word in words.dropFirst() {
                names[String(decoding: word, as: UTF8.self).asciiLowercased, default: []].append(address)
            }
        }
        return names
    }
}

/// Tells one state of a file from another.
struct FileVersion: Equatable {
    static let none = FileVersion(seconds: 0, nanoseconds: 0, inode: 0)
    private let seconds: Int, nanoseconds: Int
    private let inode: UInt

    private init(seconds: Int, nanoseconds: Int, inode: UInt) {
        (self.seconds, self.nanoseconds, self.inode) = (seconds, nanoseconds, inode)
    }

    /// `none` if there is no such file.
    init(of path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else {
            self = .none
            return
        }
        self.init(
            seconds: status.st_mtim.tv_sec, nanoseconds: status.st_mtim.tv_nsec, inode: UInt(status.st_ino))
    }
}
