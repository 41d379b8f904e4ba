/// The names in curl's cache of addresses: those of running transfers, and a few until the next transfer takes them out. A transfer
/// brings its name's addresses in (CURLOPT_RESOLVE), so curl's own resolver is never asked, and never has a name that nobody uses: curl 7.88
/// would walk through all of them at the end of each transfer. Used only on the downloader's thread.
final class CurlNames {
    /// Transfers by name and port, as curl's cache has them.
    private var users: [String: Int] = [:]
    private var unused: Set<String> = []

    /// The lines for a transfer's start; ``didEnd(_:)`` follows with the same `place`.
    /// * `place`: name and port.
    func lines(for place: String, _ addresses: [IPAddress]) -> [String] {
        users[place, default: 0] += 1
        unused.remove(place)
        let list = addresses.map { $0.isIPv6 ? "[\($0)]" : "\($0)" }.joined(separator: ",")
        return takeUnused() + ["\(place):\(list)"]
    }

    /// The lines for a transfer that needs no name.
    func takeUnused() -> [String] {
        guard !unused.isEmpty else { return [] }
        defer { unused = [] }
        return unused.map { "-\($0)" }
    }

    func didEnd(_ place: String) {
        guard let count = users[place] else { return }
        users[place] = count > 1 ? count - 1 : nil
        if count == 1 { unused.insert(place) }
    }

    /// curl's cache is gone, with no transfer running.
    func removeAll() {
        users = [:]
        unused = []
    }
}
