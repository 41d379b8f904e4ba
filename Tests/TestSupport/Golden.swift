internal import Foundation
package import Testing

/// Texts that are kept in `Tests/Golden`: a change of what people and programs read shows there. With TEST_GOLDEN=write they are written
/// anew, and fail once where they differed.
package enum Golden {
    /// * `name`: below `Tests/Golden`, without `.txt`.
    package static func expect(
        _ text: String, is name: String, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../Golden/\(name).txt")
            .standardized
        let kept = try? String(contentsOf: file, encoding: .utf8)
        // Bytes: String's equality is canonical equivalence.
        let isKept = kept.map { Array($0.utf8) == Array(text.utf8) } ?? false
        if !isKept, ProcessInfo.processInfo.environment["TEST_GOLDEN"] == "write" {
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(text.utf8).write(to: file)
        }
        #expect(isKept, "\(difference(kept ?? "", text, name))", sourceLocation: sourceLocation)
    }

    /// The lines that differ, the kept ones with `-` and those of now with `+`.
    private static func difference(_ kept: String, _ text: String, _ name: String) -> String {
        let old = kept.split(separator: "\n", omittingEmptySubsequences: false)
        let changes = text.split(separator: "\n", omittingEmptySubsequences: false).difference(from: old)
        let lines = changes.prefix(40).map { change in
            switch change {
            case .remove(let line, let text, _): "\(line + 1)- \(text)"
            case .insert(let line, let text, _): "\(line + 1)+ \(text)"
            }
        }
        return "Tests/Golden/\(name).txt:\n" + lines.joined(separator: "\n")
    }
}
