import Foundation
import TestSupport
import Testing

/// What README and docs say to type.
@Suite("Documents that run", .timeLimit(.minutes(5)))
struct DocsTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..").standardized

    private func docs(_ tree: String, _ options: [String] = []) async throws -> (ChildProcess.Status, String) {
        var environment: [String: String] = [:]
        environment["BIN"] = URL(filePath: builtProduct("prefetch-coord")).deletingLastPathComponent().path()
        let child = try await ChildProcess("\(tree)/scripts/docs-test", options, environment: environment)
        return (await child.wait(), child.stdout + child.stderr)
    }

    @Test("Every block of commands runs and prints what the page shows, or says why it cannot run here")
    func pages() async throws {
        let (status, said) = try await docs(Self.root.path())
        #expect(status == .exited(0), "\(said)")
        #expect(said.contains(/docs-test: [1-9][0-9] blocks ran, [0-9]+ cannot run here, 0 problems/), "\(said)")
    }

    @Test("A page that shows something else, a block without a mark and a script that is not there are found")
    func spoilt() async throws {
        let folder = TemporaryDirectory()
        let copy = try await ChildProcess(
            "/bin/cp", ["-a", "\(Self.root.path())/docs", "\(Self.root.path())/scripts", folder.path])
        #expect(await copy.wait() == .exited(0))
        for (name, text) in [
            ("README.md", "<!-- runs: ten -->\n```\n$ prefetch-coord failures --cache ./cache\nnothing failed\n```\n"),
            (
                "README.zh-CN.md",
                "text\n```\nscripts/check\n```\n<!-- does not run here: scripts/gone does it -->\n```\nscripts/check\n```\n"
            ),
        ] { folder.write(Array(text.utf8), to: name) }
        for page in ["README.md", "README.zh-CN.md"] {
            let (status, said) = try await docs(
                folder.path, ["--only", page])
            #expect(status == .exited(1), "\(said)")
            for line in page == "README.md"
                ? ["does not print what the page shows: nothing failed"]
                : ["README.zh-CN.md:3: commands without a mark", "there is no scripts/gone"]
            {
                #expect(said.contains(line), "\(said)")
            }
        }
    }
}
