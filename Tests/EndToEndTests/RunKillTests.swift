import Foundation
import Glibc
import Origin
import TestSupport
import Testing

@Suite("A run that is killed", .timeLimit(.minutes(5)))
struct RunKillTests {
    /// The children of a process, by /proc.
    private func children(_ pid: Int32) -> [Int32] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return names.compactMap { Int32($0) }.filter { child in
            // The name in the second field may have blanks and brackets; what is behind it has none.
            let text = (try? String(contentsOfFile: "/proc/\(child)/stat", encoding: .utf8)) ?? ""
            let fields = text.split(separator: ")").last?.split(separator: " ") ?? []
            return fields.count > 1 && Int32(fields[1]) == pid
        }
    }

    @Test("kill -9 of a run leaves no child: workers and the private Redis end with it")
    func kill9() async throws {
        let folder = TemporaryDirectory()
        let origin = try OriginServer()
        var held = OriginResponse(body: [1])
        held.fault = .stallBeforeHeader
        origin.route("/held", held)
        folder.write(Array((origin.url("/held") + "\n").utf8), to: "urls.txt")
        let run = try await ChildProcess(
            builtProduct("prefetch-coord"),
            [
                "run", folder.path("urls.txt"), "--cache", folder.path("cache"), "-n", "2", "--allow-net",
                "127.0.0.0/8", "-q",
            ])
        await origin.waitForRequests(1, to: "/held")
        // Two workers and redis-server.
        try await until { children(run.pid).count >= 3 }
        let all = children(run.pid)
        run.signal(SIGKILL)
        #expect(await run.wait() == .signalled(SIGKILL))
        // What is left of one that nobody has waited for is no child that lives.
        func lives(_ pid: Int32) -> Bool {
            let text = (try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8)) ?? ""
            let state = text.split(separator: ")").last?.split(separator: " ").first
            return state != nil && state != "Z"
        }
        try await until { !all.contains(where: lives) }
    }
}
