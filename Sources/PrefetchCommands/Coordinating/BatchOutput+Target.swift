internal import Prefetch
internal import WebImage

extension BatchOutput {
    /// Where to, and as what.
    enum Target: Sendable {
        /// A text of a line for each line of the list, into a file; nil is standard output.
        case text(Text, String?)
        /// Images into a folder.
        case files(String)
        /// Images into a folder that is laid out as the URLs are.
        case tree(String)
        /// Images as SDWebImage's cache has them.
        case sdWebImage(String, SDWebImageFileName.Layout)
        /// Images in archives, and how many in each.
        case webDataset(String, perShard: Int)

        /// NDJSON into a file; nil is standard output.
        static func lines(_ path: String?) -> Target { .text(.jsonl, path) }

        /// Looks whether it can be written, and makes the folder.
        /// - Throws: `cacheUnavailable` (73).
        func check() throws(PrefetchError) {
            switch self {
            case .text(_, let path?): try OutputFile.check(path)
            case .text: return
            case .files(let path), .tree(let path), .sdWebImage(let path, _): _ = try ImageFolder(path: path)
            case .webDataset(let path, let count): _ = try ImageShards(path: path, perShard: count)
            }
        }

        /// The words of `export` that write it.
        var words: String {
            func folder(_ path: String) -> String { Shell.quoted(Shell.path(path)) }
            return switch self {
            case .text(let text, let path): "--to \(text.rawValue) --output \(folder(path ?? "-"))"
            case .files(let path): "--to files \(folder(path))"
            case .tree(let path): "--to tree \(folder(path))"
            case .sdWebImage(let path, let layout): "--to sdwebimage \(folder(path)) --layout \(layout.rawValue)"
            case .webDataset(let path, let count): "--to webdataset \(folder(path)) --per-shard \(count)"
            }
        }
    }

    /// What is written about each line of the list.
    enum Text: String, Sendable, CaseIterable {
        /// An object of JSON.
        case jsonl
        /// Values told apart by commas, or by tabs.
        case csv, tsv
        /// The URLs that were skipped: a list to run again.
        case failed
        /// URL, SHA-256, length and pixels of each image: what `run --locked` checks.
        case lock

        /// How a table is written; nil of what is none.
        var table: BatchTable.Form? {
            switch self {
            case .csv: .commas
            case .tsv: .tabs
            case .jsonl, .failed, .lock: nil
            }
        }

        /// What stands in front of all lines.
        var head: String { self == .lock ? ImageLock.head : "" }

        /// A line with its end; empty where there is nothing to say.
        func line(_ line: ExportedLine) -> String {
            switch self {
            case .jsonl: return BatchJSON.line(line).text + "\n"
            // Written by ``BatchTable``, which knows the columns of all lines.
            case .csv, .tsv: return ""
            case .failed:
                guard let outcome = line.result.outcome, outcome.isSkipped else { return "" }
                // What is no URL would be none again; a person may want to see it.
                let url = ShownURL.url(line.result.url)
                return outcome == .invalidURL ? "# \(url)\n" : "\(url)\n"
            // Written by ``BatchExport/forEachLock(_:)``, since it wants every digest.
            case .lock: return ""
            }
        }
    }
}
