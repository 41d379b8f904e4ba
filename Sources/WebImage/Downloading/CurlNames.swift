/// The names in curl's cache of addresses: those of running transfers, and a few until the next transfer takes them out. A transfer
/// brings its name's addresses in (CURLOPT_RESOLVE), so curl's own resolver is never asked, and never has a name that nobody uses: curl 7.88
/// would walk through all of them at the end of each transfer. Used only on the downloader's thread.
final class CurlNames {
    /// A name and port, as curl's cache has it.
    final class Entry {
        fileprivate let text: String
        fileprivate var users = 0
        fileprivate var isUnused = false

        fileprivate init(_ text: String) { self.text = text }
    }

    private var entries: [String: Entry] = [:]
    /// May have users again.
    private var unused: [Entry] = []

    /// The entry and the lines for a transfer's start; ``didEnd(_:)`` follows.
    func begin(_ name: String, port: Int, _ addresses: [IPAddress]) -> (entry: Entry, lines: [String]) {
        let text = "\(name):\(port)"
        let entry: Entry
        if let known = entries[text] {
            entry = known
        } else {
            entry = Entry(text)
            entries[text] = entry
        }
        entry.users += 1
        var line = text
        var mark = ":"
        for address in addresses {
            line += mark
            line += address.isIPv6 ? "[\(address)]" : address.description
            mark = ","
        }
        return (entry, takeUnused() + [line])
    }

    /// The lines for a transfer that needs no name.
    func takeUnused() -> [String] {
        guard !unused.isEmpty else { return [] }
        var lines: [String] = []
        for entry in unused {
            entry.isUnused = false
            guard entry.users == 0 else { continue }
            entries[entry.text] = nil
            lines.append("-" + entry.text)
        }
        unused.removeAll(keepingCapacity: true)
        return lines
    }

    func didEnd(_ entry: Entry) {
        entry.users -= 1
        guard entry.users == 0, !entry.isUnused else { return }
        entry.isUnused = true
        unused.append(entry)
    }

    /// curl's cache is gone, with no transfer running.
    func removeAll() {
        entries = [:]
        unused = []
    }
}
