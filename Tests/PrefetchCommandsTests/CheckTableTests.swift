import Foundation
import Testing

/// docs/CHECKS.md, docs/HOSTILE.md and SECURITY.md against the tests and scripts they speak of.
@Suite("The table of checks", .timeLimit(.minutes(5)))
struct CheckTableTests {
    private let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    @Test("The tests that hold the promises of SECURITY.md are there")
    func promises() throws {
        let page = try String(contentsOf: root.appending(path: "SECURITY.md"), encoding: .utf8)
        let tests = try NamedTests(root: root)
        let named = page.matches(of: /`(\w+Tests)(\.\w+)?`/)
        #expect(named.count > 20)
        for match in named {
            let isThere = match.2 == nil ? tests.hasSuite(match.1) : tests.exists("\(match.1)\(match.2 ?? "")")
            #expect(isThere, "there is nothing as \(match.0)")
        }
        let isThere = tests.hasSuite("NoSuchTests")
        #expect(!isThere)
    }

    @Test("Each row of docs/HOSTILE.md has its tests, which are there")
    func servers() throws {
        let page = try String(contentsOf: root.appending(path: "docs/HOSTILE.md"), encoding: .utf8)
        let tests = try NamedTests(root: root)
        let rows = NamedTests.rows(of: page, named: "test")
        #expect(rows.count > 40)
        for row in rows {
            let proofs = (row.last ?? "").matches(of: /`([^`]+)`/).map(\.1)
            #expect(!proofs.isEmpty, "\(row[0])")
            for proof in proofs {
                let isThere =
                    tests.hasSuite(proof) || tests.exists("`\(proof)`") || tests.exists("\(proof)")
                    || tests.hasCase(proof, of: "HostileServerTests")
                #expect(isThere, "\(row[0]): there is nothing as \(proof)")
            }
        }
        let isThere = tests.hasCase("no such row", of: "HostileServerTests")
        #expect(!isThere)
    }

    @Test("Each of the 29 checks is there once, with tests and scripts that are there")
    func checks() throws {
        let page = try String(contentsOf: root.appending(path: "docs/CHECKS.md"), encoding: .utf8)
        let tests = try NamedTests(root: root)
        let rows = NamedTests.rows(of: page, named: "done by")
        #expect(rows.map { $0.first ?? "" } == (1...29).map(String.init))
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
