/// The beginning of a body whose transfer broke off, kept to go on from there (RFC 9110, section 14).
struct PartialBody {
    /// Only there the rest is asked for.
    let url: String
    let body: ImageBody
    /// What says that the rest is of the same bytes: a strong ETag, or a date that is strong (section 13.1.5).
    let validator: String
    /// Where the header has to be looked at next.
    let nextInspection: Int

    var count: Int { body.count }

    /// The headers that ask for the rest, or for the whole where the bytes have changed.
    var headers: [HTTPHeader] {
        [HTTPHeader("Range", "bytes=\(count)-"), HTTPHeader("If-Range", validator)]
    }

    /// Whether a `Content-Range` is that of the rest; `total` where it says one.
    func continues(with contentRange: String?) -> (isRest: Bool, total: Int?) {
        guard let text = contentRange?.lowercased(), text.hasPrefix("bytes ") else { return (false, nil) }
        let parts = text.dropFirst(6).split(separator: "/")
        guard parts.count == 2, let first = parts[0].split(separator: "-").first, Int(first) == count else {
            return (false, nil)
        }
        return (true, Int(parts[1]))
    }

    /// The validator of a response that makes its body one to go on with; nil where nothing vouches for it.
    static func validator(eTag: String?, lastModified: String?, date: String?) -> String? {
        if let eTag { return eTag.hasPrefix("\"") ? eTag : nil }
        // A date can stand for the bytes only where they were not changed twice within its second.
        guard let lastModified, let changed = Freshness.time(of: lastModified),
            let sent = date.flatMap(Freshness.time(of:)), changed < sent
        else { return nil }
        return lastModified
    }
}
