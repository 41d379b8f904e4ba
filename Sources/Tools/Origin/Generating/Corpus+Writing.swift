internal import CLinux
internal import Glibc
internal import Threading

extension Corpus {
    package struct Summary: Sendable, Equatable {
        package var bytes: Int
        package var median, percentile95: Int
    }

    /// Writes every image to a folder, with `manifest.tsv`: path, kind, bytes and digest of each, in order.
    /// * `folder`: created if missing; has to be empty, because existing files would be served too.
    /// * `threads`: number of images generated concurrently.
    /// * `digest`: computes the last column of the manifest from an image's bytes. Called on any thread.
    /// - Throws: ``OriginError`` if the folder is not empty or not writable.
    package func write(
        to folder: String, threads: Int, digest: @escaping @Sendable ([UInt8]) -> String
    ) async throws(OriginError) -> Summary {
        try Self.prepare(folder)
        for index in 0...max(0, count - 1) / 100 {
            try Self.makeFolder(folder + "/" + image(index * 100).path.prefix { $0 != "/" })
        }
        let threads = max(1, threads)
        let pool = ThreadPool(threads: threads, name: "generate")
        let parts = await withTaskGroup(of: Result<[Row], OriginError>.self) { group in
            for first in 0..<threads {
                group.addTask(executorPreference: pool) {
                    writeImages(stride(from: first, to: count, by: threads), folder, digest)
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        var rows: [Row] = []
        for part in parts { rows += try part.get() }
        rows.sort { $0.index < $1.index }
        try Self.write(Array(rows.map(\.line).joined().utf8), to: folder + "/manifest.tsv")
        let sizes = rows.map(\.bytes).sorted()
        return Summary(
            bytes: sizes.reduce(0, +), median: sizes.isEmpty ? 0 : sizes[sizes.count / 2],
            percentile95: sizes.isEmpty ? 0 : sizes[sizes.count * 95 / 100])
    }

    private struct Row: Sendable {
        var index: Int
        var bytes: Int
        var line: String
    }

    private func writeImages(
        _ indices: StrideTo<Int>, _ folder: String, _ digest: @Sendable ([UInt8]) -> String
    ) -> Result<[Row], OriginError> {
        var rows: [Row] = []
        for index in indices {
            let image = image(index)
            let bytes = image.bytes()
            do throws(OriginError) {
                try Self.write(bytes, to: "\(folder)/\(image.path)")
            } catch {
                return .failure(error)
            }
            let line = "\(image.path)\t\(image.kind.rawValue)\t\(bytes.count)\t\(digest(bytes))\n"
            rows.append(Row(index: index, bytes: bytes.count, line: line))
        }
        return .success(rows)
    }

    private static func prepare(_ folder: String) throws(OriginError) {
        if mkdir(folder, 0o777) == 0 { return }
        guard errno == EEXIST, let handle = opendir(folder) else { throw OriginError("cannot make \(folder)") }
        defer { closedir(handle) }
        // Skips "." and "..".
        for _ in 0..<2 { _ = readdir(handle) }
        guard readdir(handle) == nil else { throw OriginError("cannot use \(folder)", code: ENOTEMPTY) }
    }

    private static func makeFolder(_ path: String) throws(OriginError) {
        guard mkdir(path, 0o777) == 0 else { throw OriginError("cannot make \(path)") }
    }

    private static func write(_ bytes: [UInt8], to path: String) throws(OriginError) {
        let file = clinux_open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
        guard file >= 0 else { throw OriginError("cannot write \(path)") }
        defer { close(file) }
        var written = 0
        while written < bytes.count {
            let count = bytes.withUnsafeBytes { Glibc.write(file, $0.baseAddress! + written, $0.count - written) }
            guard count > 0 else {
                if count < 0 && errno == EINTR { continue }
                throw OriginError("cannot write \(path)")
            }
            written += count
        }
    }
}
