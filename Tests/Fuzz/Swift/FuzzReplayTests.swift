import Foundation
import Testing

/// The inputs that fuzzing has kept for the readers in Swift, each of which reaches code of its own.
@Suite("Inputs of the fuzz targets in Swift", .timeLimit(.minutes(2)))
struct FuzzReplayTests {
    @Test("No reader traps, and no two contradict each other", arguments: FuzzTarget.allCases)
    func read(_ target: FuzzTarget) throws {
        let file = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../corpus/\(target.rawValue).txt").standardized
        let inputs = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
        #expect(inputs.count > 1)
        for line in inputs {
            let parts = line.split(separator: " ", omittingEmptySubsequences: false)
            let bytes = Array(try #require(Data(base64Encoded: String(parts[1]))))
            #expect(throws: Never.self, "\(target.rawValue)/\(parts[0])") { try target.read(bytes) }
        }
    }
}
