/// Two paths of a URL that Unicode takes for one text (canonical equivalence, UAX #15) and HTTP for two resources.
package struct EquivalentPaths: Sendable, CustomStringConvertible {
    package let description: String
    package let one: String
    package let other: String

    /// One pair of each kind.
    package static let all = [
        EquivalentPaths("an accent", "/\u{E9}.png", "/e\u{301}.png"),
        EquivalentPaths("the angstrom sign", "/\u{212B}.png", "/\u{C5}.png"),
        EquivalentPaths("the ohm sign", "/\u{2126}.png", "/\u{3A9}.png"),
        EquivalentPaths("the Kelvin sign in a query", "/k.png?t=\u{212A}", "/k.png?t=K"),
        EquivalentPaths("jamo of Hangul", "/\u{D55C}.png", "/\u{1112}\u{1161}\u{11AB}.png"),
        EquivalentPaths("a compatibility ideograph", "/\u{F900}.png", "/\u{8C48}.png"),
        EquivalentPaths("the order of two marks", "/a\u{323}\u{302}.png", "/a\u{302}\u{323}.png"),
        EquivalentPaths("dakuten", "/\u{304C}.png", "/\u{304B}\u{3099}.png"),
        EquivalentPaths("the name of a folder", "/\u{E9}/a.png", "/e\u{301}/a.png"),
        EquivalentPaths("the Greek question mark", "/g\u{37E}.png", "/g;.png"),
    ]

    private init(_ description: String, _ one: String, _ other: String) {
        (self.description, self.one, self.other) = (description, one, other)
    }
}
