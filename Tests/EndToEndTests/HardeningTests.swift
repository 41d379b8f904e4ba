import Foundation
import TestSupport
import Testing

/// How programs are linked and, where they are built for release, compiled.
@Suite("Hardening of programs", .timeLimit(.minutes(2)))
struct HardeningTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..").standardized

    private func hardened(_ words: [String]) async throws -> (status: ChildProcess.Status, said: String) {
        let child = try await ChildProcess("\(Self.root.path())/scripts/lib/hardened", words)
        return (await child.wait(), child.stdout + child.stderr)
    }

    @Test("Programs are position-independent, with read-only relocations and a stack that is not executed")
    func layout() async throws {
        let programs = ["prefetch-coord", "prefetch-worker", "prefetch-codec"].map { builtProduct($0) }
        let (status, said) = try await hardened(["--layout"] + programs)
        #expect(status == .exited(0) && said.isEmpty, "\(said)")
    }

    @Test("What is built for release has a stack protector and checked calls in its C, and binds at once")
    func release() async throws {
        let built = try await ChildProcess(
            "\(Self.root.path())/scripts/lib/release", ["--is-built", "prefetch-coord", "prefetch-codec"])
        // Minutes of building are not for this suite: scripts/package looks at what it packs.
        guard await built.wait() == .exited(0) else { return }
        let folder = "\(Self.root.path())/.build/release"
        let (status, said) = try await hardened(["\(folder)/prefetch-coord", "\(folder)/prefetch-codec"])
        #expect(status == .exited(0) && said.isEmpty, "\(said)")
    }

    @Test("A program without them is named, with what it lacks")
    func lacking() async throws {
        let folder = TemporaryDirectory()
        folder.write(Array("int main(void) { return 0; }\n".utf8), to: "a.c")
        let words = [
            "-no-pie", "-fno-stack-protector", "-z", "execstack", "-z", "norelro", "-o", folder.path("a"),
            folder.path("a.c"),
        ]
        let compiler = try await ChildProcess("/usr/bin/env", ["cc"] + words)
        try #require(await compiler.wait() == .exited(0), "\(compiler.stderr)")
        let (status, said) = try await hardened([folder.path("a")])
        #expect(status == .exited(1))
        for text in [
            "is not position-independent", "has an executable stack", "has no read-only relocations",
            "binds its functions late",
            "has no stack protector", "has no checked calls",
        ] { #expect(said.contains(text), "\(text): \(said)") }
    }
}
