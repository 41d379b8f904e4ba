import Foundation
import Origin
import Prefetch
import TestSupport
import Testing

/// The users of Redis that docs/OPERATIONS.md gives, as they are there.
@Suite("Users of Redis by role", .timeLimit(.minutes(5)))
struct RedisRoleTests: FolderSuite {
    let folder = TemporaryDirectory()
    private let origin: OriginServer
    private let redis: RedisServer
    private let port: Int

    init() async throws {
        origin = try OriginServer()
        port = freePort()
        let page = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../docs/OPERATIONS.md")
        let users = try String(contentsOf: page, encoding: .utf8).split(separator: "\n").filter {
            $0.hasPrefix("user ")
        }
        #expect(users.count == 3)
        folder.write(
            Array((users.joined(separator: "\n") + "\nuser default on nopass ~* &* +@all\n").utf8), to: "users.acl")
        redis = try await RedisServer(
            options: ["--port", "\(port)", "--bind", "127.0.0.1", "--aclfile", folder.path("users.acl")],
            appendOnly: true)
    }

    private func url(_ user: String) -> String { "redis://\(user):\(user.uppercased())@127.0.0.1:\(port)" }

    private func run(
        _ user: String, _ words: String, exits code: Int32 = 0, says text: String = ""
    ) async throws -> ChildProcess {
        try await ran(words.split(separator: " ").map(String.init) + ["--redis", url(user)], exits: code, says: text)
    }

    @Test("A batch is submitted, fetched and looked at by users who may do that, and nothing else of what is said")
    func roles() async throws {
        origin.setFallback { request in
            request.path.hasPrefix("/none")
                ? OriginResponse(status: 404)
                : OriginResponse(body: GeneratedImage.png(seed: UInt64(request.number), width: 8, height: 8))
        }
        let file = list((0..<300).map { origin.url($0 % 10 == 0 ? "/none/\($0)" : "/\($0)") })
        _ = try await run("submitter", "submit \(file) --name one --robots --rate-per-host 10000 --priority high")
        let worker = try await ChildProcess(
            builtProduct("prefetch-worker"),
            ["--redis", url("worker"), "--cache", folder.path("cache"), "--allow-net", "127.0.0.0/8", "--burst"])
        #expect(await worker.wait() == .exited(0), "\(worker.stderr)")
        // Everything that looks, for each of them.
        for user in ["viewer", "submitter", "worker"] {
            #expect(try await run(user, "status").stdout.contains("270 images"), "\(user)")
            #expect(try await run(user, "failures one").stdout.contains("httpError 404"))
            let export = try await run(user, "export one --format jsonl --cache \(folder.path("cache"))").stdout
            #expect(export.split(separator: "\n").count == 300)
            #expect(try await run(user, "why \(origin.url("/none/0"))").stdout.contains("blacklist"))
            _ = try await run(user, "watch one", exits: 3)
            for words in ["workers", "fsck", "blacklist list", "metrics"] {
                _ = try await run(user, words)
            }
        }
        // What changes a batch is for the submitter.
        _ = try await run("submitter", "submit \(file) --name two")
        for words in [
            "pause two", "resume two", "set two --rate-per-host 5", "cancel two --yes", "rm two --yes", "retry one",
        ] {
            _ = try await run("viewer", words, exits: 77, says: "Redis forbids")
            _ = try await run("submitter", words)
        }
        // What concerns everybody is not.
        let of = ["blacklist add http://x/", "pause --all", "set --all --max-concurrent-downloads 3"]
        for words in of + ["submit \(file)"] { _ = try await run("viewer", words, exits: 77, says: "Redis forbids") }
        for words in of { _ = try await run("submitter", words, exits: 77, says: "Redis forbids") }
        // Other queues, and the server, are nobody's.
        for user in ["viewer", "submitter", "worker"] {
            _ = try await run(user, "status --queue other", exits: 77, says: "Redis forbids")
            for command in [
                "FLUSHALL", "CONFIG GET *", "KEYS *", "ACL LIST", "SHUTDOWN NOSAVE", "SET other 1", "GET other",
            ] {
                let said = try await ChildProcess(
                    "/usr/bin/env",
                    ["redis-cli", "-u", url(user), "--no-auth-warning"] + command.split(separator: " ").map(String.init)
                )
                await said.wait()
                #expect(said.stdout.contains("NOPERM"), "\(user) \(command): \(said.stdout)\(said.stderr)")
            }
        }
        _ = try await run("worker", "fsck")
    }
}
