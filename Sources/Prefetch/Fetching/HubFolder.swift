internal import FoundationEssentials
internal import Glibc
internal import WebImage

/// A folder of a dataset on the Hugging Face hub.
struct HubFolder {
    private struct Entry: Decodable {
        let type: String
        let path: String
    }

    /// Pages of a thousand names.
    private static let mostPages = 1_000

    private let path: ListAddress.HubPath
    private let hub: ListFetcher.Hub
    private let fetcher: ListFetcher

    init(_ path: ListAddress.HubPath, _ hub: ListFetcher.Hub, _ fetcher: ListFetcher) {
        (self.path, self.hub, self.fetcher) = (path, hub, fetcher)
    }

    /// The addresses of the files in it, in the order of the bytes of their names.
    /// * `pattern`: nil: those that are lists by their names.
    /// - Throws: `notFound` if there are none; `unreadableList`.
    func files(matching pattern: ListAddress.HubPath?) async throws(PrefetchError) -> [String] {
        let entries = try await entries()
        let found = entries.filter { entry in
            guard entry.type == "file" else { return false }
            guard let pattern else { return Self.isList(entry.path) }
            return fnmatch(pattern.path, entry.path, FNM_PATHNAME | FNM_PERIOD) == 0
        }
        guard !found.isEmpty else {
            let names = entries.prefix(10).map { String($0.path.split(separator: "/").last ?? "") }
            let others = entries.count > names.count ? " and \(entries.count - names.count) more" : ""
            throw PrefetchError(
                .notFound,
                pattern.map { "no file on the hub matches \($0.text)" } ?? "\(path.text) has no lists",
                hint: names.isEmpty ? "there is nothing in it" : "in it are \(names.joined(separator: ", "))\(others)")
        }
        return found.map { entry in
            var file = path
            file.path = entry.path
            return file.text
        }.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }

    private func entries() async throws(PrefetchError) -> [Entry] {
        var all: [Entry] = []
        var next: String? = path.tree(at: hub.address)
        for _ in 0..<Self.mostPages {
            guard let url = next else { break }
            guard url.utf8.starts(with: "\(hub.address)/".utf8) else {
                throw unreadable("its list of names goes on at another site")
            }
            guard let page = try await fetcher.page(url) else {
                throw PrefetchError(
                    .notFound, "there is no \(path.text) on the hub", hint: "check the name: OWNER/NAME, and the path")
            }
            guard let entries = try? JSONDecoder().decode([Entry].self, from: Data(page.bytes)) else {
                throw unreadable("its names are not as expected")
            }
            all += entries
            next = page.next
        }
        return all
    }

    private func unreadable(_ reason: String) -> PrefetchError {
        PrefetchError(
            .unreadableList, "cannot read \(path.text): \(reason)", hint: "name one file: \(path.text)/FILE.parquet")
    }

    private static let endings = [".parquet", ".csv", ".tsv", ".txt", ".jsonl", ".ndjson"]

    /// Whether a file is a list by its name, also packed.
    static func isList(_ path: String) -> Bool {
        var name = (path.split(separator: "/").last.map(String.init) ?? "").asciiLowercased
        for packed in [".gz", ".zst"] where name.hasSuffix(packed) { name.removeLast(packed.count) }
        return !name.hasPrefix(".") && endings.contains { name.hasSuffix($0) }
    }
}
