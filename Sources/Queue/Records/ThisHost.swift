internal import Glibc

/// The machine that this process runs on, as others are told of it.
package enum ThisHost {
    /// gethostname(2).
    package static var name: String {
        var buffer = [CChar](repeating: 0, count: 256)
        gethostname(&buffer, buffer.count - 1)
        return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// `host:pid`, as workers and feeders are named.
    package static var nameAndPID: String { "\(name):\(getpid())" }
}
