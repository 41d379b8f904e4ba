internal import CCurl

/// The names in curl's cache of addresses: those of running transfers, and a few until the next transfer takes them out. A transfer
/// brings its name's addresses in (CURLOPT_RESOLVE), so curl's own resolver is never asked, and never has a name that nobody uses: curl 7.88
/// would walk through all of them at the end of each transfer. Used only on the downloader's thread.
final class CurlNames {
    fileprivate struct Place: Hashable {
        let name: ByteText
        let port: Int
    }

    /// A name and port, as curl's cache has it.
    final class Entry {
        fileprivate let place: Place
        fileprivate var users = 0
        fileprivate var isUnused = false

        fileprivate init(_ place: Place) { self.place = place }
    }

    private var entries: [Place: Entry] = [:]
    /// May have users again.
    private var unused: [Entry] = []
    /// The line that is being written.
    private var line: [UInt8] = []

    /// The entry and the lines for a transfer's start; ``didEnd(_:)`` follows.
    func begin(_ name: String, port: Int, _ addresses: [IPAddress]) -> (entry: Entry, lines: CurlList) {
        func use(_ entry: inout Entry) -> Entry {
            entry.users += 1
            return entry
        }
        let place = Place(name: ByteText(name), port: port)
        let entry = use(&entries[place, default: Entry(place)])
        let lines = takeUnused() ?? CurlList()
        write(place)
        var mark = UInt8(ascii: ":")
        for address in addresses {
            line.append(mark)
            let text = address.description
            if address.isIPv6 { line.append(UInt8(ascii: "[")) }
            line.append(contentsOf: text.utf8)
            if address.isIPv6 { line.append(UInt8(ascii: "]")) }
            mark = UInt8(ascii: ",")
        }
        endLine(lines)
        return (entry, lines)
    }

    /// The lines for a transfer that needs no name; nil: none.
    func takeUnused() -> CurlList? {
        guard !unused.isEmpty else { return nil }
        let lines = CurlList()
        for entry in unused {
            entry.isUnused = false
            guard entry.users == 0 else { continue }
            entries[entry.place] = nil
            line.append(UInt8(ascii: "-"))
            write(entry.place)
            endLine(lines)
        }
        unused.removeAll(keepingCapacity: true)
        return lines
    }

    private func write(_ place: Place) {
        line.append(contentsOf: place.name.text.utf8)
        line.append(UInt8(ascii: ":"))
        line.append(contentsOf: String(place.port).utf8)
    }

    private func endLine(_ lines: CurlList) {
        line.append(0)
        lines.append(line)
        line.removeAll(keepingCapacity: true)
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
