/// Names in a list that nothing uses, of members of JSON lines or of columns of a table, with where they are.
package struct UnknownMembers: Sendable, Equatable {
    /// Names beyond so many are not told apart: what writes a new one into each line must not take all memory.
    private static let most = 100

    /// How many lines have a name, and the first of them.
    package struct Use: Sendable, Equatable {
        package var name: String
        package var count: Int
        package var line: Int
    }

    private var places: [String: Int] = [:]
    /// In the order in which they were met.
    package private(set) var uses: [Use] = []
    /// Whether there are more than are told apart.
    package private(set) var hasMore = false

    mutating func note(_ names: [String], line: Int) {
        for name in names {
            if let place = places[name] {
                uses[place].count += 1
            } else if uses.count < Self.most {
                places[name] = uses.count
                uses.append(Use(name: name, count: 1, line: line))
            } else {
                hasMore = true
            }
        }
    }
}
