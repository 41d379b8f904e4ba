internal import Glibc

/// Makes lines of a sitemap: its images, or its pages if it has no images. Sitemaps of an index are read from its folder.
final class SitemapLines {
    private struct File {
        let path: String
        /// What it is called in messages.
        let name: String
        let wanted: SitemapReader.Kind
    }

    private let path: String
    private let called: String
    private var files: [File] = []
    private var bytes: InputBytes?
    private var reader = SitemapReader()
    private var wanted = SitemapReader.Kind.page

    /// * `path`: of a file that can be read several times.
    /// * `called`: what it is called in messages.
    /// * `isCopy`: whether it is the copy of a pipe, without neighbouring files.
    /// - Throws: `unreadableList` with the line if it is none, or an index of one that is missing.
    init(_ path: String, called: String, isCopy: Bool) throws(PrefetchError) {
        (self.path, self.called) = (path, called)
        var maps: [(address: String, line: Int)] = []
        let wanted = try Self.wanted(of: path, name: "the sitemap") { address, line in maps.append((address, line)) }
        guard !maps.isEmpty else {
            files = [File(path: path, name: "the sitemap", wanted: wanted)]
            return
        }
        var known: [ByteText: (address: String, line: Int)] = [:]
        for map in maps {
            let file = try local(map.address, line: map.line, isCopy)
            if let other = known.updateValue(map, forKey: file), !other.address.hasBytes(of: map.address) {
                throw PrefetchError(
                    .unreadableList,
                    "lines \(other.line) and \(map.line) of \(called) name two sitemaps, and both would be \(file)",
                    hint: "submit each by itself, as files of two names")
            }
            let wanted = try Self.wanted(of: file, name: file) { _, _ throws(PrefetchError) in
                throw PrefetchError(
                    .unreadableList, "line \(map.line) of \(called) names \(file), which is an index too",
                    hint: "an index names sitemaps only; submit \(file) by itself")
            }
            files.append(File(path: file, name: file, wanted: wanted))
        }
    }

    /// The next lines, possibly none; nil at the end.
    func next() throws(PrefetchError) -> [UInt8]? {
        if bytes == nil {
            guard !files.isEmpty else { return nil }
            try open(files.removeFirst())
        }
        guard let piece = try bytes?.next(), !piece.isEmpty else {
            try reader.finish()
            bytes = nil
            return []
        }
        var lines: [UInt8] = []
        try reader.read(piece) { kind, address, _ throws(PrefetchError) in
            if kind == wanted { ImportedLine.write(Array(address.utf8)[...], to: &lines) }
        }
        return lines
    }

    private func open(_ file: File) throws(PrefetchError) {
        wanted = file.wanted
        reader = SitemapReader(name: file.name)
        bytes = try InputBytes(path: file.path)
    }

    /// Which of its addresses are wanted.
    /// * `map`: called with each sitemap that it names, and the line of that.
    private static func wanted(
        of path: String, name: String, map: (String, Int) throws(PrefetchError) -> Void
    ) throws(PrefetchError) -> SitemapReader.Kind {
        var images = 0
        var reader = SitemapReader(name: name)
        var bytes = try InputBytes(path: path)
        while case let piece = try bytes.next(), !piece.isEmpty {
            try reader.read(piece) { kind, address, line throws(PrefetchError) in
                if kind == .image { images += 1 }
                if kind == .sitemap { try map(address, line) }
            }
        }
        try reader.finish()
        return images > 0 ? .image : .page
    }

    /// The file in the index's folder that has the name of an address.
    private func local(_ address: String, line: Int, _ isCopy: Bool) throws(PrefetchError) -> String {
        let names = "line \(line) of \(called) names \(address)"
        let together = "nothing is fetched for a list: fetch all of its sitemaps into one folder with it"
        guard !isCopy else {
            throw PrefetchError(
                .unreadableList, "\(names), a sitemap, and there is nothing beside \(called)",
                hint: "\(together), and submit the file of the index")
        }
        let place = address.prefix { $0 != "?" && $0 != "#" }
        let route = place.firstRange(of: "://").map { place[$0.upperBound...].drop { $0 != "/" } } ?? place
        let name = String(route.split(separator: "/", omittingEmptySubsequences: false).last ?? "")
        let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? ""
        guard !name.isEmpty, name != ".", name != ".." else {
            throw PrefetchError(
                .unreadableList, "\(names), which is the address of no file",
                hint: "submit that sitemap by itself, as a file: curl -sS -o sitemap.xml URL")
        }
        guard PathText.withBytes(folder + name, { access($0, R_OK) }) == 0 else {
            throw PrefetchError(
                .unreadableList, "\(names), and there is no \(folder)\(name)",
                hint: "\(together), for example: curl -sS --remote-name-all URL…")
        }
        return folder + name
    }
}
