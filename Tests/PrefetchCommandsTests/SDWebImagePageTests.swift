import Foundation
import Testing

/// docs/SDWEBIMAGE.md against the tests that it names.
@Suite("The comparison with SDWebImage", .timeLimit(.minutes(5)))
struct SDWebImagePageTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    @Test("Every test that the page names is there")
    func proofs() throws {
        let page = try String(contentsOf: Self.root.appending(path: "docs/SDWEBIMAGE.md"), encoding: .utf8)
        let tests = try NamedTests(root: Self.root)
        let rows = NamedTests.rows(of: page, named: "proved by")
        #expect(rows.count > 70)
        for row in rows {
            for proof in row[row.count - 1].components(separatedBy: "; ") {
                let isThere = tests.exists(proof)
                #expect(isThere, "\(row[0]): there is no test as \(proof)")
            }
        }
    }

    @Test("Every golden trace is named by the page")
    func traces() throws {
        let page = try String(contentsOf: Self.root.appending(path: "docs/SDWEBIMAGE.md"), encoding: .utf8)
        let folder = Self.root.appending(path: "Tests/Golden/traces").path
        let names = try FileManager.default.contentsOfDirectory(atPath: folder).map { String($0.dropLast(4)) }
        #expect(names.count > 25)
        for name in names {
            let isNamed = page.contains("trace \(name)")
            #expect(isNamed, "\(name)")
        }
    }
}
