internal import Glibc

/// The identity of this machine and process for others.
package enum ThisHost {
    package static var name: String {
        var buffer = [CChar](repeating: 0, count: 256)
        gethostname(&buffer, buffer.count - 1)
        return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// `host:pid`, the name of workers and feeders.
    package static var nameAndPID: String { "\(name):\(getpid())" }
}
