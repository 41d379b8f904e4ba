/// Unknown JSON members or table columns of a list, with their lines.
package struct UnknownMembers: Sendable, Equatable {
    /// The most distinct names: a new name in each line must not take all memory.
    private static let most = 100

    /// Number of lines with a name, and the first of them.
    package struct Use: Sendable, Equatable {
        package var name: String
        package var count: Int
        package var line: Int
    }

    private var places: [ByteText: Int] = [:]
    package private(set) var uses: [Use] = []
    /// Whether there were more names than are kept.
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
