/// The beginning of an interrupted body, kept to be resumed (RFC 9110, section 14).
struct PartialBody {
    /// Resumed only at this URL.
    let url: String
    let body: ImageBody
    /// Strong ETag, or strong date (section 13.1.5), which guarantees that the rest belongs to the same bytes.
    let validator: String
    let nextInspection: Int

    var count: Int { body.count }

    /// Requests the rest, or the whole if the bytes have changed.
    var headers: [HTTPHeader] {
        [HTTPHeader("Range", "bytes=\(count)-"), HTTPHeader("If-Range", validator)]
    }

    /// Whether a `Content-Range` is the requested rest; `total` if specified.
    func continues(with contentRange: String?) -> (isRest: Bool, total: Int?) {
        guard let text = contentRange?.lowercased(), text.hasPrefix("bytes ") else { return (false, nil) }
        let parts = text.dropFirst(6).split(separator: "/")
        guard parts.count == 2, let first = parts[0].split(separator: "-").first, Int(first) == count else {
            return (false, nil)
        }
        return (true, Int(parts[1]))
    }

    /// The validator that makes a body resumable; nil if there is none.
    static func validator(eTag: String?, lastModified: String?, date: String?) -> String? {
        if let eTag { return eTag.hasPrefix("\"") ? eTag : nil }
        // A date identifies the bytes only if they cannot have changed twice within its second.
        guard let lastModified, let changed = Freshness.time(of: lastModified),
            let sent = date.flatMap(Freshness.time(of:)), changed < sent
        else { return nil }
        return lastModified
    }
}
