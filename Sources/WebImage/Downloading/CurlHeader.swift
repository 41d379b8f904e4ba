internal import CCurl

/// Counts the header lines of a transfer's responses, and bounds them.
final class CurlHeader {
    let pointer: UnsafeMutablePointer<ccurl_header>

    init() {
        pointer = .allocate(capacity: 1)
        pointer.initialize(to: ccurl_header())
    }

    deinit { pointer.deallocate() }

    /// Has `action` called with `owner` at the end of each header that has a Content-Encoding, before the body.
    func onCoding(
        of owner: UnsafeMutableRawPointer, _ action: @escaping @convention(c) (UnsafeMutableRawPointer?) -> Void
    ) {
        pointer.pointee.owner = owner
        pointer.pointee.did_end_coded = action
    }

    func begin(maxBytes: Int, maxLines: Int) {
        (pointer.pointee.bytes, pointer.pointee.lines) = (0, 0)
        (pointer.pointee.is_complete, pointer.pointee.is_coded) = (false, false)
        pointer.pointee.max_bytes = maxBytes
        pointer.pointee.max_lines = maxLines
    }

    var bytes: Int { pointer.pointee.bytes }

    /// Whether the last response's header is complete: curl accepts one truncated by the end of the connection.
    var isComplete: Bool { pointer.pointee.is_complete }

    /// Whether the last response has a Content-Encoding.
    var isCoded: Bool { pointer.pointee.is_coded }

    /// Has the bytes of lines that set cookies added to a sum.
    func addCookies(to sum: UnsafeMutablePointer<Int>) { pointer.pointee.cookie_bytes = sum }

    /// Whether the transfer was aborted because of it.
    var isTooLong: Bool { tooManyBytes || pointer.pointee.lines > pointer.pointee.max_lines }

    var tooManyBytes: Bool { pointer.pointee.bytes > pointer.pointee.max_bytes }
}
