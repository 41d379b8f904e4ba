import Foundation
import Testing

/// docs/CHECKS.md against the tests and scripts it speaks of.
@Suite("The table of checks", .timeLimit(.minutes(5)))
struct CheckTableTests {
    @Test("Each of the 28 checks is there once, with tests and scripts that are there")
    func checks() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let page = try String(contentsOf: root.appending(path: "docs/CHECKS.md"), encoding: .utf8)
        let tests = try NamedTests(root: root)
        let rows = NamedTests.rows(of: page, named: "done by")
        #expect(rows.map { $0.first ?? "" } == (1...28).map(String.init))
        for row in rows {
            for proof in (row.last ?? "").components(separatedBy: "; ") {
                // By itself: what the macro would print of it is every test there is.
                let isThere = tests.exists(proof)
                #expect(isThere, "\(row[0]): there is nothing as \(proof)")
            }
        }
        for wrong in ["`scripts/nothing`", "`docs/CHECKS.md`", "NoSuchTests.totals", "TotalsTests.nothing", ""] {
            let isThere = tests.exists(wrong)
            #expect(!isThere, "\(wrong)")
        }
    }
}
