/// Masks the secrets in URLs for everything that is printed or written for humans: the password, and the values of query and fragment
/// parameters that sign a request or hold credentials. Each becomes `***`. docs/HOSTILE.md lists the names. A URL inside a parameter,
/// percent-encoded or not, is masked too.
package enum URLRedaction {
    package static let mask = "***"

    /// Masks a whole URL; invalid URLs are accepted too. What is masked already stays as it is.
    package static func url(_ url: String) -> String { masked(url, isText: false) }

    /// Masks a whole URL with other replacements.
    package static func url(_ url: String, substituting substitute: (String) -> String) -> String {
        masked(url, isText: false, depth: 0, substitute) ?? url
    }

    /// Masks the URLs in a sentence; blanks, quotes and angle brackets end them.
    package static func text(_ text: String) -> String { masked(text, isText: true) }

    private static func masked(_ text: String, isText: Bool) -> String {
        var text = text
        // A secret may have had the byte at which what is around it ends.
        while let next = masked(text, isText: isText, depth: 0, { _ in mask }) { text = next }
        return text
    }

    /// Whether a parameter with this name, percent-encoded or not, is secret.
    package static func isSecret(_ name: String) -> Bool {
        let name = decoded(name).asciiLowercased
        if names.contains(name) { return true }
        let bare = Substring(decoding: name.utf8.filter { !"-_.[]".utf8.contains($0) }, as: UTF8.self)
        return endings.contains { bare.endsWithBytes(of: $0) }
    }

    /// In lower case; in addition to ``endings``.
    private static let names: Set<ByteText> = [
        // Storage and content networks: Azure, CloudFront, Alibaba, Tencent, Akamai, Discord, nginx, ImageKit.
        "sig", "policy", "key-pair-id", "googleaccessid", "sign", "q-ak", "auth_key", "hdnts", "hdnea", "hdntl",
        "__gda__",
        "hm", "md5", "ik-s", "wssecret", "hmac",
        // Logins.
        "key", "pass", "pwd", "auth", "jwt", "sid", "session", "sessionid", "session_id", "ticket", "otp",
    ]

    /// Endings of names without `-`, `_`, `.` and brackets: `X-Amz-Signature`, `access_token`, `apiKey`, `client_secret`.
    private static let endings = [
        "signature", "token", "secret", "password", "passwd", "passphrase", "apikey", "accesskey", "accesskeyid",
        "secretkey", "privatekey", "subscriptionkey", "credential", "credentials", "authorization",
    ]

    /// Nil if nothing was masked, the usual case.
    private static func masked(
        _ text: String, isText: Bool, depth: Int, _ substitute: (String) -> String
    ) -> String? {
        let bytes = Array(text.utf8)
        guard bytes.contains(where: { $0 == at || startsParameter($0) }) else { return nil }
        var out: [UInt8] = []
        var copied = 0
        var index = 0
        func replace(_ range: Range<Int>) {
            let value = String(decoding: bytes[range], as: UTF8.self)
            guard !range.isEmpty, !value.hasBytes(of: mask) else { return }
            out += bytes[copied..<range.lowerBound]
            out += Array(substitute(value).utf8)
            copied = range.upperBound
        }
        while index < bytes.count {
            let byte = bytes[index]
            if byte == colon, bytes[index...].starts(with: "://".utf8) {
                let start = index + 3
                let end = bytes[start...].firstIndex { endsAuthority($0) || isText && endsText($0) } ?? bytes.count
                index = start
                guard let last = bytes[start..<end].lastIndex(of: at) else { continue }
                if let end = bytes[start..<last].firstIndex(of: colon) { replace((end + 1)..<last) }
                index = last + 1
            } else if startsParameter(byte) {
                let start = index + 1
                index = start
                let equals = bytes[start...].firstIndex { $0 == equal || endsName($0) || isText && endsText($0) }
                guard let equals, bytes[equals] == equal, equals > start else { continue }
                let end =
                    bytes[(equals + 1)...].firstIndex { endsValue($0) || isText && endsText($0) } ?? bytes.count
                let value = (equals + 1)..<end
                if isSecret(String(decoding: bytes[start..<equals], as: UTF8.self)) {
                    replace(value)
                    index = end
                } else if depth < 3, bytes[value].contains(percent) {
                    let inner = decoded(String(decoding: bytes[value], as: UTF8.self))
                    if masked(inner, isText: false, depth: depth + 1, substitute) != nil {
                        replace(value)
                        index = end
                    }
                }
            } else {
                index += 1
            }
        }
        guard copied > 0 else { return nil }
        return String(decoding: out + bytes[copied...], as: UTF8.self)
    }

    private static let (at, colon, equal, percent) = (
        UInt8(ascii: "@"), UInt8(ascii: ":"), UInt8(ascii: "="), UInt8(ascii: "%")
    )

    private static func startsParameter(_ byte: UInt8) -> Bool { "?&;#".utf8.contains(byte) }
    private static func endsName(_ byte: UInt8) -> Bool { "?&;#/".utf8.contains(byte) }
    private static func endsValue(_ byte: UInt8) -> Bool { "&;#".utf8.contains(byte) }
    private static func endsAuthority(_ byte: UInt8) -> Bool { "/?#\\".utf8.contains(byte) }
    private static func endsText(_ byte: UInt8) -> Bool { byte <= 0x20 || "\"'<>".utf8.contains(byte) }

    /// Removes up to three levels of percent-encoding; invalid escapes are kept.
    private static func decoded(_ text: String) -> String {
        var text = text
        for _ in 0..<3 {
            guard text.utf8.contains(percent) else { return text }
            let bytes = Array(text.utf8)
            var out: [UInt8] = []
            var index = 0
            while index < bytes.count {
                if bytes[index] == percent, index + 2 < bytes.count,
                    let high = Character(UnicodeScalar(bytes[index + 1])).hexDigitValue,
                    let low = Character(UnicodeScalar(bytes[index + 2])).hexDigitValue
                {
                    out.append(UInt8(high << 4 | low))
                    index += 3
                } else {
                    out.append(bytes[index])
                    index += 1
                }
            }
            text = String(decoding: out, as: UTF8.self)
        }
        return text
    }
}
