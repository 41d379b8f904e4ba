internal import Glibc

package struct OriginError: Error, CustomStringConvertible {
    package var description: String

    init(_ what: String, code: Int32 = errno) {
        description = "\(what): \(String(cString: strerror(code)))"
    }
}
