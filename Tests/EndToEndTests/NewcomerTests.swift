import Foundation
import TestSupport
import Testing

/// `scripts/newcomer` on a small tree of its own, whose build and demo take a known time.
@Suite("A newcomer's first minutes, measured", .timeLimit(.minutes(5)))
struct NewcomerTests: FolderSuite {
    let folder = TemporaryDirectory()
    private static let script = PythonTools.root.appending(path: "scripts/lib/newcomer.py").path()

    private func measure(_ words: String = "") async throws -> ChildProcess {
        try await shell("python3 -B '\(Self.script)' --tree tree \(words)")
    }

    /// A tree whose `scripts/run` is one of a shell: half a second of building, of a demo, then a list that is all there.
    private func plant(run: String, readme: String? = nil) async throws {
        let readme =
            readme
            ?? "# t\n\n```\n$ scripts/run      # the demo\n$ scripts/run urls.txt --cache ./cache -n 4   # yours\n```\n"
        folder.write(Array(readme.utf8), to: "README.md")
        folder.write(Array(("#!/usr/bin/env bash\nset -e\n" + run).utf8), to: "run")
        let commit = "git -c user.name=t -c user.email=t@t -c init.defaultBranch=main"
        let plant = try await shell(
            """
            rm -rf tree && mkdir -p tree/scripts && mv README.md tree && mv run tree/scripts && chmod +x tree/scripts/run \
            && cd tree && \(commit) init -q && git add . && \(commit) commit -qm t && echo later > uncommitted
            """)
        #expect(await plant.wait() == .exited(0), "\(plant.stderr)")
    }

    private static let good = """
        if [ $# -gt 0 ]; then
            [ "$*" = "urls.txt --cache ./cache -n 4 --allow-net 127.0.0.0/8" ]
            while read -r url; do exec 3<>"/dev/tcp/${url:7:9}/$(sed -E 's|.*:([0-9]+)/.*|\\1|' <<<"$url")"; printf 'GET /%s HTTP/1.0\\r\\n\\r\\n' "${url##*/}" >&3; head -n 1 <&3 >&2; done <urls.txt
            echo "urls-1 done: finished $(wc -l <urls.txt) of $(wc -l <urls.txt): $(wc -l <urls.txt) images, 0 skipped"
            exit
        fi
        [ ! -e uncommitted ]
        i=0; while ((i < 200000)); do ((i += 1)); done
        echo "demo: 2 URLs"
        mkdir demo-cache
        for n in 1 2; do { printf '\\211PNG'; head -c 2000 /dev/zero; } >demo-cache/$n; done
        echo "all 2 outcomes as expected."
        """

    @Test("A clone of what is committed is built and run as the README says, and each part has its time")
    func measured() async throws {
        try await plant(run: Self.good)
        let run = try await measure("--json")
        #expect(await run.wait() == .exited(0), "\(run.stdout)\(run.stderr)")
        let figures = try #require(try JSONSerialization.jsonObject(with: Data(run.stdout.utf8)) as? [String: Any])
        func figure(_ name: String) -> Double { figures[name] as? Double ?? -1 }
        #expect(figure("build_seconds") > 0 && figure("demo_seconds") >= 0 && figure("cpu_seconds") > 0)
        #expect(figure("list_urls") == 2 && figures["ok"] as? Bool == true, "\(figures)")
        let text = try await measure()
        #expect(
            text.stdout.contains(" s the demo\n") && text.stdout.hasSuffix("both commands did what the README says\n"))
        #expect(folder.contents().allSatisfy { $0.hasPrefix("tree") })
    }

    @Test("What is slow, fails or is not what the README says is told, and ends with 1")
    func failures() async throws {
        try await plant(run: Self.good)
        let slow = try await measure("--build-limit 0")
        #expect(await slow.wait() == .exited(1) && slow.stderr.contains("FAIL  the build took "), "\(slow.stderr)")
        try await plant(run: Self.good.replacing("as expected", with: "as it came"))
        let other = try await measure()
        #expect(
            await other.wait() == .exited(1) && other.stderr.contains("FAIL  scripts/run: exit 0"), "\(other.stderr)")
        try await plant(run: Self.good.replacing(", 0 skipped", with: ", 1 skipped"))
        let skips = try await measure()
        #expect(
            await skips.wait() == .exited(1) && skips.stderr.contains("FAIL  scripts/run urls.txt"), "\(skips.stderr)")
        try await plant(run: Self.good, readme: "```\n$ make\n```\n")
        let readme = try await measure()
        #expect(await readme.wait() == .exited(1) && readme.stderr.hasPrefix("error: the README does not begin with"))
    }
}
