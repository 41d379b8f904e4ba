internal import CCurl

/// Counts the header lines of a transfer's responses, and bounds them.
final class CurlHeader {
    let pointer: UnsafeMutablePointer<ccurl_header>

    init() {
        pointer = .allocate(capacity: 1)
        pointer.initialize(to: ccurl_header())
    }

    deinit { pointer.deallocate() }

    func begin(maxBytes: Int, maxLines: Int) {
        pointer.pointee = ccurl_header()
        pointer.pointee.max_bytes = maxBytes
        pointer.pointee.max_lines = maxLines
    }

    var bytes: Int { pointer.pointee.bytes }

    /// Whether the last response's header is complete: curl accepts one truncated by the end of the connection.
    var isComplete: Bool { pointer.pointee.is_complete }

    /// Whether the transfer was aborted because of it.
    var isTooLong: Bool { tooManyBytes || pointer.pointee.lines > pointer.pointee.max_lines }

    var tooManyBytes: Bool { pointer.pointee.bytes > pointer.pointee.max_bytes }
}
