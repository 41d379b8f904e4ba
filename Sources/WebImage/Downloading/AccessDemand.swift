/// What a server wants from a client that it has sent away with 401 or 403, or with an empty 202, for the message of the failure.
struct AccessDemand {
    /// What it wants, in words.
    let text: String
    let reason: FailureReason

    /// Characters of a challenge that are kept.
    private static let longest = 120

    /// Its challenges (WWW-Authenticate, RFC 9110, section 11.6.1), or that it lets only browsers in (`cf-mitigated`, Cloudflare's documentation of challenge
    /// pages); for a 202 without a body, with which bot walls hand out their challenge to a browser (`x-amzn-waf-action`, documentation of AWS WAF),
    /// that it is empty; nil if it does not say.
    /// * `headers`: the values of a response header.
    init?(status: Int, headers: (String) -> [String]) {
        if status == 202 {
            let action = headers("x-amzn-waf-action")
            text = "an empty body, as bot walls send it" + (action.isEmpty ? "" : ": aws \(Self.cut(action))")
            reason = .browsersOnly
            return
        }
        guard status == 401 || status == 403 else { return nil }
        let mitigated = headers("cf-mitigated")
        guard mitigated.isEmpty else {
            (text, reason) = ("cloudflare \(Self.cut(mitigated)): cf-mitigated", .browsersOnly)
            return
        }
        let challenges = headers("WWW-Authenticate")
        guard !challenges.isEmpty else { return nil }
        (text, reason) = (Self.cut(challenges), .credentials)
    }

    /// Printable ASCII; anything else as `\xNN` for each of its bytes.
    private static func cut(_ values: [String]) -> String {
        var text = ""
        for byte in values.joined(separator: ", ").utf8 {
            if text.utf8.count >= longest { return text + "…" }
            if (0x20...0x7E).contains(byte), byte != UInt8(ascii: "\\") {
                text.unicodeScalars.append(UnicodeScalar(byte))
            } else {
                text += "\\x" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
            }
        }
        return text
    }
}
