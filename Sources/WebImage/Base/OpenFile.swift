internal import Glibc

package struct OpenFile: ~Copyable {
    package let descriptor: Int32

    /// The result of an open call, which it closes; nil if the call failed, with `errno` intact.
    package init?(_ descriptor: Int32) {
        guard descriptor >= 0 else { return nil }
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }

    consuming func release() -> Int32 {
        let descriptor = descriptor
        discard self
        return descriptor
    }

    /// Writes all bytes. Returns 0 or an errno.
    package static func write(_ bytes: [UInt8], to descriptor: Int32) -> Int32 {
        bytes.withUnsafeBytes { write($0, to: descriptor) }
    }

    static func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) -> Int32 {
        var rest = bytes
        while !rest.isEmpty {
            let count = Glibc.write(descriptor, rest.baseAddress, rest.count)
            if count < 0 {
                if errno == EINTR { continue }
                return errno
            }
            rest = UnsafeRawBufferPointer(rebasing: rest[count...])
        }
        return 0
    }

    /// Reads up to `limit` bytes at `offset`; nil with `errno` on an error.
    static func read(_ descriptor: Int32, at offset: Int, limit: Int) -> [UInt8]? {
        var failed = false
        let bytes = [UInt8](unsafeUninitializedCapacity: limit) { buffer, filled in
            while filled < limit {
                let count = pread(descriptor, buffer.baseAddress! + filled, limit - filled, offset + filled)
                if count < 0 && errno == EINTR { continue }
                failed = count < 0
                if count <= 0 { break }
                filled += count
            }
        }
        return failed ? nil : bytes
    }
}
