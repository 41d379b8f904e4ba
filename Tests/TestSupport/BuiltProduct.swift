internal import Glibc

/// The path of a program that was built together with the tests: beside the test bundle.
package func builtProduct(_ name: String) -> String {
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = buffer.withUnsafeMutableBytes { readlink("/proc/self/exe", $0.baseAddress!, $0.count) }
    precondition(count > 0, "/proc is not mounted")
    let own = String(decoding: buffer[..<count], as: UTF8.self)
    return own[...(own.lastIndex(of: "/") ?? own.startIndex)] + name
}
