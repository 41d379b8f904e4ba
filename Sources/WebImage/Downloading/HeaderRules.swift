/// The ``ImageRules`` of many downloads, in one reference. Downloads share a transfer only if their rules are equal.
package final class HeaderRules: Sendable, Hashable {
    private let rules: ImageRules

    /// Nil if every image is taken.
    package init?(_ rules: ImageRules) {
        guard !rules.isEmpty else { return nil }
        self.rules = rules
    }

    /// Judges an image while or after its bytes arrive.
    /// - Throws: `imageRefused` if it breaks a rule whatever follows.
    func judge(_ header: ImageHeader) throws(WebImageError) {
        guard let objection = rules.objection(to: header) else { return }
        if header.mayTurn {
            let turned = PixelSize(width: header.size.height, height: header.size.width)
            if rules.objection(to: ImageHeader(format: header.format, size: turned)) == nil { return }
        }
        throw WebImageError(.imageRefused, objection.message, reason: objection.reason)
    }

    package static func == (lhs: HeaderRules, rhs: HeaderRules) -> Bool {
        lhs === rhs || lhs.rules == rhs.rules
    }

    package func hash(into hasher: inout Hasher) { rules.hash(into: &hasher) }
}
