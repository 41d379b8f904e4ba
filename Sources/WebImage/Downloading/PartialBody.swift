/// The beginning of an interrupted body, kept to be resumed (RFC 9110, section 14).
struct PartialBody {
    /// What the header of a response says of the bytes that it sends, or sends a part of.
    struct Representation {
        var eTag: String?
        var lastModified: String?
        /// Bytes of all of it; nil: unknown.
        var length: Int?
    }

    /// What a response adds to the body.
    struct Rest {
        /// With the length, if it is known now.
        let representation: Representation
        /// Bytes of the body with the rest.
        let end: Int
    }

    /// Resumed only at this URL.
    let url: String
    let body: ImageBody
    /// As the first response described it.
    let representation: Representation
    /// Strong ETag, or strong date (section 13.1.5), which guarantees that the rest belongs to the same bytes.
    let validator: String
    let nextInspection: Int

    var count: Int { body.count }

    /// Requests the rest, or the whole if the bytes have changed.
    var headers: [HTTPHeader] {
        [HTTPHeader("Range", "bytes=\(count)-"), HTTPHeader("If-Range", validator)]
    }

    /// What a 206 adds; nil if that is not the rest of this body. Some servers ignore If-Range, and the nodes of a network may have different
    /// bytes: parts are joined only if ETag, date and length are those of the first response (sections 14.4 and 15.3.7.3). A date may be
    /// missing, as section 15.3.7 recommends, and a length is compared if the first one is known.
    /// * `other`: its ETag and date.
    func rest(_ contentRange: String?, of other: Representation) -> Rest? {
        guard let range = contentRange.flatMap(ContentRange.init), range.first == count else { return nil }
        var joined = representation
        switch (representation.eTag, other.eTag) {
        case (nil, nil): break
        case (let first?, let second?) where first.utf8.elementsEqual(second.utf8): break
        default: return nil
        }
        if let first = representation.lastModified, let second = other.lastModified, !Self.isSame(first, second) {
            return nil
        }
        if let length = representation.length {
            guard range.length == length else { return nil }
        } else {
            joined.length = range.length
        }
        // A part of the rest is no end.
        if let length = range.length, length != range.last + 1 { return nil }
        return Rest(representation: joined, end: range.last + 1)
    }

    private static func isSame(_ first: String, _ second: String) -> Bool {
        if first.utf8.elementsEqual(second.utf8) { return true }
        guard let one = Freshness.time(of: first), let other = Freshness.time(of: second) else { return false }
        return one == other
    }

    /// The validator that makes a body resumable; nil if there is none.
    /// * `date`: when the response was sent.
    static func validator(of representation: Representation, date: String?) -> String? {
        if let eTag = representation.eTag {
            // Others than ASCII were repaired on their way here, so that two of them may look the same.
            return eTag.hasPrefix("\"") && eTag.utf8.allSatisfy { $0 < 0x80 } ? eTag : nil
        }
        // A date identifies the bytes only if they cannot have changed twice within its second.
        guard let lastModified = representation.lastModified, let changed = Freshness.time(of: lastModified),
            let sent = date.flatMap(Freshness.time(of:)), changed < sent
        else { return nil }
        return lastModified
    }
}

/// The value of a `Content-Range` of a 206: `bytes FIRST-LAST/LENGTH`, or `*` for an unknown length (RFC 9110, section 14.4).
private struct ContentRange {
    let first: Int
    let last: Int
    let length: Int?

    /// Nil if it is invalid.
    init?(_ text: String) {
        let words = text.utf8.split(separator: UInt8(ascii: " "))
        guard words.count == 2, Substring(words[0]).lowercased() == "bytes" else { return nil }
        let parts = words[1].split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        let ends = parts[0].split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        guard ends.count == 2, let first = Self.number(ends[0]), let last = Self.number(ends[1]), first <= last,
            last < Int.max
        else { return nil }
        (self.first, self.last) = (first, last)
        if parts[1].elementsEqual("*".utf8) {
            length = nil
        } else {
            guard let number = Self.number(parts[1]), number > last else { return nil }
            length = number
        }
    }

    /// Digits alone: `Int` would take a sign.
    private static func number(_ digits: Substring.UTF8View) -> Int? {
        digits.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) } ? Int(Substring(digits)) : nil
    }
}
