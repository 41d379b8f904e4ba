/// Makes files of lists that have an address.
package protocol ListOpening: Sendable {
    /// Whether a word is an address of such a list, and not a path.
    func isAddress(_ word: String) -> Bool

    /// Begins to fetch a list that will be read.
    func begin(_ address: String)

    /// The file that was made of it. Blocks: never on a thread of the cooperative pool.
    /// * `waitLimit`: milliseconds for which it waits; -1: for as long as it takes.
    /// - Returns: nil if there is none yet.
    /// - Throws: `notFound`, `unreadableList` and others, with the address.
    func file(of address: String, waitLimit: Int32) throws(PrefetchError) -> String?
}
