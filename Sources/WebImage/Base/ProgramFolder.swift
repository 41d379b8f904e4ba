internal import Glibc

/// The folder of the program that runs, where the other programs of prefetch are.
package enum ProgramFolder {
    /// With a `/` at its end; empty if it is not known.
    package static let path: String = {
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = bytes.withUnsafeMutableBytes { buffer in
            buffer.withMemoryRebound(to: CChar.self) { readlink("/proc/self/exe", $0.baseAddress!, $0.count) }
        }
        let own = bytes.prefix(max(0, count))
        return String(decoding: own.lastIndex(of: UInt8(ascii: "/")).map { own[...$0] } ?? [], as: UTF8.self)
    }()
}
