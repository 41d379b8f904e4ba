/// What a server wants from a client that it has sent away with 401 or 403, or with an empty 202, for the message of the failure.
enum AccessDemand {
    /// Characters of a challenge that are kept.
    private static let longest = 120

    /// Its challenges (WWW-Authenticate, RFC 9110, section 11.6.1), or that it lets only browsers in (`cf-mitigated`, Cloudflare's documentation of challenge
    /// pages); for a 202 without a body, with which bot walls hand out their challenge to a browser (`x-amzn-waf-action`, documentation of AWS WAF),
    /// that it is empty; nil if it does not say.
    /// * `headers`: the values of a response header.
    static func text(status: Int, headers: (String) -> [String]) -> String? {
        if status == 202 {
            let action = headers("x-amzn-waf-action")
            return "an empty body, as bot walls send it" + (action.isEmpty ? "" : ": aws \(cut(action))")
        }
        guard status == 401 || status == 403 else { return nil }
        let mitigated = headers("cf-mitigated")
        if !mitigated.isEmpty { return "cloudflare \(cut(mitigated)): cf-mitigated" }
        let challenges = headers("WWW-Authenticate")
        return challenges.isEmpty ? nil : cut(challenges)
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
