internal import CLinux
internal import Glibc

/// Bytes that children of this process read from an inherited descriptor: secrets that must be neither on a command line nor in a file.
///
/// They are in sealed memory (memfd_create(2)). A restarted child reads them again: pread(2) reads from the beginning, whatever other
/// processes have read.
package final class InheritedDocument: Sendable {
    /// Open as long as this object.
    package let descriptor: Int32

    /// - Throws: `software` if the kernel has no memory or descriptor for it.
    package init(_ bytes: [UInt8]) throws(PrefetchError) {
        descriptor = clinux_memory_file()
        guard descriptor >= 0 else { throw Self.failure() }
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
            guard count > 0 else { throw Self.failure() }
            rest = rest.dropFirst(count)
        }
        _ = clinux_seal(descriptor)
    }

    deinit { close(descriptor) }

    /// Reads the document of the parent process, and closes the descriptor, so that children of this one do not inherit it.
    /// - Returns: nil if there is no such descriptor.
    package static func take(_ descriptor: Int32) -> [UInt8]? {
        // Standard descriptors are never a document.
        guard descriptor > 2 else { return nil }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeMutableBytes {
                pread(descriptor, $0.baseAddress! + done, $0.count - done, off_t(done))
            }
            guard count > 0 else { return nil }
            done += count
        }
        return bytes
    }

    private static func failure() -> PrefetchError {
        PrefetchError(
            .software, "cannot hand settings to the workers: \(String(cString: strerror(errno)))",
            hint: "the limit of open files may be reached: ulimit -n")
    }
}
