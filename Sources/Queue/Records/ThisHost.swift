internal import Glibc

/// The identity of this machine and process for others.
package enum ThisHost {
    package static var name: String {
        var buffer = [CChar](repeating: 0, count: 256)
        gethostname(&buffer, buffer.count - 1)
        return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// The name of the user whose rights the process has; its number if there is none.
    package static var user: String {
        var entry = passwd()
        var found: UnsafeMutablePointer<passwd>?
        var buffer = [CChar](repeating: 0, count: 1 << 14)
        guard getpwuid_r(geteuid(), &entry, &buffer, buffer.count, &found) == 0, found != nil, let name = entry.pw_name
        else { return String(geteuid()) }
        return String(cString: name)
    }

    /// `host:pid`, the name of workers and feeders.
    package static var nameAndPID: String { "\(name):\(getpid())" }
}
