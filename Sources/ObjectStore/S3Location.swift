internal import WebImage

/// A place in an object store: a bucket and what its keys begin with, `s3://BUCKET/PREFIX` as the tools of AWS write it.
package struct S3Location: Sendable {
    package let bucket: String
    /// Empty, or with a slash at its end.
    package let prefix: String

    /// Whether a word is meant as such an address.
    package static func isAddress(_ word: String) -> Bool { word.prefix(3).asciiLowercased == "s3:" }

    /// - Throws: `configuration`.
    package init(_ address: String) throws(S3Error) {
        let parts = address.dropFirst(5).split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        let bucket = String(parts.first ?? "")
        guard address.prefix(5).asciiLowercased == "s3://", Self.isBucket(bucket) else {
            throw S3Error(
                .configuration, "\(address.debugDescription) names no bucket",
                hint: "write s3://BUCKET/PREFIX; a bucket has 3 to 63 ASCII letters, digits, dots, hyphens, underscores"
            )
        }
        var names = parts.count > 1 ? parts[1].split(separator: "/", omittingEmptySubsequences: false) : []
        if names.last?.isEmpty == true { names.removeLast() }
        // Programs that copy objects into files would make other names of them.
        guard names.allSatisfy({ !$0.isEmpty && $0 != "." && $0 != ".." && !$0.utf8.contains { $0 < 0x20 } }),
            names.reduce(0, { $0 + $1.utf8.count + 1 }) <= Self.longestPrefix
        else {
            throw S3Error(
                .configuration, "the prefix of \(address.debugDescription) cannot be used",
                hint: "its names are not empty, not . and .., and have no control characters; it has "
                    + "\(Self.longestPrefix) bytes at most")
        }
        (self.bucket, prefix) = (bucket, names.map { $0 + "/" }.joined())
    }

    /// A key has 1,024 bytes at most (S3, "Naming Amazon S3 objects").
    private static let longestPrefix = 960

    /// The rules for buckets that exist: those for new ones leave out capitals and underscores (S3, "General purpose bucket naming rules").
    private static func isBucket(_ name: String) -> Bool {
        (3...63).contains(name.utf8.count) && name.utf8.first != UInt8(ascii: ".")
            && name.utf8.allSatisfy {
                switch $0 {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
                    true
                default: false
                }
            }
    }

    /// The address again, without a slash at its end.
    package var text: String { "s3://\(bucket)" + (prefix.isEmpty ? "" : "/\(prefix.dropLast())") }

    package func key(of name: String) -> String { prefix + name }

    /// Percent-encoded as Signature Version 4 wants it: all but unreserved characters (RFC 3986, 2.3).
    /// * `kept`: a further byte that stays.
    static func encoded(_ text: String, keeping kept: UInt8? = nil) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var out: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"), kept:
                out.append(byte)
            default: out += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: out, as: UTF8.self)
    }
}
