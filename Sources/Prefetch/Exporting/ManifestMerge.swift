internal import FoundationEssentials
internal import Threading
internal import WebImage

/// Manifests of one batch (`export --format jsonl`) from other machines, read line by line in parallel, for images that our caches lack.
package final class ManifestMerge: Sendable {
    private struct Line: Decodable {
        var line: Int
        var url: String
        var path: String?
        var bytes: Int?
        var sha256: String?
        var format: String?
        var width: Int?, height: Int?
        var level: String?
        var orientation: Int?
        var frames: Int?
        var alpha: Bool?
        var colorSpace: String?
        var host: String?

        enum CodingKeys: String, CodingKey {
            case line, url, path, bytes, sha256, format, width, height, level, orientation, frames, alpha, host
            case colorSpace = "color_space"
        }
    }

    private final class Manifest {
        let path: String
        var reader: LineReader
        var next: Line?

        init(_ path: String) throws(PrefetchError) {
            self.path = path
            reader = try LineReader(path: path)
            try advance()
        }

        func advance() throws(PrefetchError) {
            let before = next?.line ?? 0
            next = nil
            guard let bytes = try reader.next() else { return }
            guard let line = try? JSONDecoder().decode(Line.self, from: Data(bytes)), line.line > before else {
                throw refused("is not a manifest of a batch: its line \(reader.lineNumber)")
            }
            next = line
        }

        func refused(_ what: String) -> PrefetchError {
            PrefetchError(
                .unreadableList, "\(path) \(what)",
                hint: "give what `prefetch-coord export --format jsonl` wrote of the same batch on another machine")
        }
    }

    private let manifests: Locked<[Manifest]>
    private let shown: @Sendable (String) -> String
    private let state = Locked(BatchExport.Absent())

    /// The absent images that the manifests had.
    package var found: BatchExport.Absent { state.withLock { $0 } }

    /// * `shown`: the form of a URL in a manifest.
    /// - Throws: `notFound`, `unreadableList` if one cannot be read.
    package init(
        _ paths: [String], shown: @escaping @Sendable (String) -> String
    ) throws(PrefetchError) {
        var manifests: [Manifest] = []
        for path in paths { manifests.append(try Manifest(path)) }
        self.manifests = Locked(manifests)
        self.shown = shown
    }

    /// Adds the first manifest's image to each line that ended with one but has none here. In the order of the list.
    /// - Throws: `unreadableList` if a manifest is invalid or of another batch.
    package func complete(_ lines: inout [ExportedLine]) throws(PrefetchError) {
        var all = lines
        try manifests.withLock { manifests throws(PrefetchError) in
            for index in all.indices {
                let isElsewhere = all[index].host != nil
                guard try Self.complete(&all[index], manifests, shown) else { continue }
                state.withLock { found in
                    if isElsewhere, let cache = all[index].result.cache {
                        found.elsewhere[cache, default: 0] += 1
                    } else {
                        found.missing += 1
                    }
                }
            }
        }
        lines = all
    }

    private static func traits(_ line: Line) -> ExportedLine.Traits? {
        guard let orientation = line.orientation, let frames = line.frames, let hasAlpha = line.alpha else {
            return nil
        }
        return ExportedLine.Traits(
            orientation: orientation, frames: frames, hasAlpha: hasAlpha,
            colorSpace: line.colorSpace.flatMap(ImageColorSpace.init(rawValue:)) ?? .unknown)
    }

    private static func complete(
        _ line: inout ExportedLine, _ manifests: [Manifest], _ shown: (String) -> String
    ) throws(PrefetchError) -> Bool {
        var isFound = false
        for manifest in manifests {
            while let next = manifest.next, next.line < line.result.line { try manifest.advance() }
            guard let next = manifest.next, next.line == line.result.line else { continue }
            guard next.url.hasBytes(of: shown(line.result.url)) else {
                throw manifest.refused("is of another list: its line \(manifest.reader.lineNumber) has another URL")
            }
            guard line.image == nil, line.result.outcome?.isSkipped == false, let path = next.path else { continue }
            line.image = ExportedLine.Image(
                path: path, bytes: max(0, next.bytes ?? 0), sha256: next.sha256,
                format: next.format.flatMap(ImageFormat.init(rawValue:)), width: next.width, height: next.height,
                level: next.level.flatMap(ValidationLevel.init(name:)), traits: Self.traits(next))
            line.host = next.host ?? line.result.cache?.host
            isFound = true
        }
        return isFound
    }
}
