import Foundation
import Origin
import TestSupport
import Testing

/// `scripts/run --toolchain` in a copy of the scripts, with a server of its own in place of swift.org.
@Suite("Downloading a toolchain", .timeLimit(.minutes(5)))
struct ToolchainTests {
    private let folder = TemporaryDirectory()
    private let origin: OriginServer
    private let fingerprint: String
    private let archive: [UInt8]
    private let signature: [UInt8]
    private let keys: [UInt8]

    /// A toolchain that is one small script, and a key that has signed it.
    init() async throws {
        origin = try OriginServer()
        let scripts = PythonTools.root.appending(path: "scripts").path()
        let made = try await ChildProcess(
            "/usr/bin/env",
            [
                "-C", folder.path(""), "bash", "-ec",
                """
                mkdir tree && cp -a '\(scripts)' tree/scripts
                mkdir -p swift-fake/usr/bin
                printf '#!/bin/sh\\necho "Swift version 6.3.1 (fake)"\\n' >swift-fake/usr/bin/swift
                chmod 755 swift-fake/usr/bin/swift
                tar -czf swift.tar.gz swift-fake
                mkdir -m 700 keyring
                export GNUPGHOME=$PWD/keyring
                trap 'gpgconf --kill gpg-agent' EXIT
                gpg --batch --quiet --passphrase '' --quick-generate-key 'Release <release@example.org>' ed25519 sign never
                gpg --batch --detach-sign -o swift.tar.gz.sig swift.tar.gz
                gpg --armor --export >keys
                gpg --with-colons --list-keys | sed -n 's/^fpr:*\\([0-9A-F]*\\):/\\1/p' | head -n 1 >fingerprint
                printf 'ID=debian\\nVERSION_ID=13\\n' >debian
                printf 'ID=fedora\\nVERSION_ID=44\\n' >fedora
                """,
            ])
        try #require(await made.wait() == .exited(0), "\(made.stderr)")
        let folder = folder
        func read(_ name: String) throws -> [UInt8] { try #require(folder.read(name)) }
        archive = try read("swift.tar.gz")
        signature = try read("swift.tar.gz.sig")
        keys = try read("keys")
        fingerprint = String(decoding: try read("fingerprint"), as: UTF8.self).trimmingCharacters(in: .newlines)
        serve()
    }

    /// What the server has; nil is a 404.
    private func serve(archive other: OriginResponse? = nil, signature: [UInt8]?? = nil, keys: [UInt8]? = nil) {
        let archive = other ?? OriginResponse(body: archive)
        let signature = signature ?? self.signature
        let keys = keys ?? self.keys
        origin.setFallback { request in
            if request.path.hasSuffix(".tar.gz") { return archive }
            let body = request.path == "/keys" ? keys : request.path.hasSuffix(".sig") ? signature : nil
            return body.map { OriginResponse(body: $0) } ?? OriginResponse(status: 404)
        }
    }

    private var environment: [String: String] {
        [
            "PATH": "/usr/bin:/bin", "SWIFT_DOWNLOAD_URL": "http://127.0.0.1:\(origin.port)", "SWIFT_VERSION": "6.3.1",
            "SWIFT_KEYS_URL": origin.url("/keys"), "SWIFT_KEYS": fingerprint, "OS_RELEASE": folder.path("debian"),
        ]
    }

    private func shell(
        _ command: String, _ changes: [String: String] = [:]
    ) async throws -> (ChildProcess.Status, String) {
        let child = try await ChildProcess(
            "/usr/bin/env", ["-C", folder.path("tree"), "bash", "-c", command],
            environment: environment.merging(changes) { $1 })
        return (await child.wait(), child.stdout + child.stderr)
    }

    /// What is left in the folder of builds.
    private var left: [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: folder.path("tree/.build"))) ?? []
    }

    @Test("The signed archive comes into .build/toolchain, and scripts find it")
    func fetched() async throws {
        let (before, ways) = try await shell("scripts/run")
        #expect(before == .exited(69))
        for way in ["package  ", "docker compose -f docker/compose.yaml", "scripts/run --toolchain"] {
            #expect(ways.contains(way), "\(ways)")
        }
        let (status, said) = try await shell("scripts/run --toolchain --yes")
        #expect(status == .exited(0), "\(said)")
        #expect(said.contains("Swift 6.3.1 is in .build/toolchain, signed by \(fingerprint)"), "\(said)")
        #expect(left == ["toolchain"])
        var place = "debian12"
        if try await shell("uname -m").1 == "aarch64\n" { place += "-aarch64" }
        let path = "/swift-6.3.1-release/\(place)/swift-6.3.1-RELEASE/swift-6.3.1-RELEASE-\(place).tar.gz"
        #expect(origin.requests.map(\.path) == ["/keys", path + ".sig", path])
        let (found, version) = try await shell(
            "scripts/install-deps --has-swift && . scripts/lib/toolchain.sh && swift --version")
        #expect(found == .exited(0) && version == "Swift version 6.3.1 (fake)\n", "\(version)")
        let (again, there) = try await shell("scripts/run --toolchain")
        #expect(again == .exited(0) && there == "Swift 6.3.1 is in .build/toolchain already\n", "\(there)")
        #expect(origin.requests.count == 3)
    }

    @Test(
        "Another processor or another C library is named, and what there is beside it",
        arguments: [("uname", "echo riscv64", "no Swift toolchain for riscv64"), ("getconf", "exit 1", "is not glibc")])
    func foreign(_ program: String, _ line: String, _ expected: String) async throws {
        folder.write(Array("#!/bin/sh\n\(line)\n".utf8), to: "tree/\(program)")
        chmod(folder.path("tree/\(program)"), 0o755)
        let (status, said) = try await shell("scripts/install-deps", ["PATH": "\(folder.path("tree")):/usr/bin:/bin"])
        #expect(status == .exited(69))
        #expect(said.hasPrefix("error: ") && said.contains(expected) && said.contains("\nhint: supported are x86-64"))
        #expect(said.split(separator: "\n").count == 2, "\(said)")
    }

    @Test("What is not signed by a key of Swift, or did not come whole, is refused, and nothing of it stays")
    func refused() async throws {
        func refuse(_ what: String, _ text: String, _ changes: [String: String] = [:]) async throws {
            let (status, said) = try await shell("scripts/run --toolchain --yes", changes)
            #expect(status == .exited(69) && said.contains(text), "\(what): \(status) \(said)")
            #expect(said.contains("https://www.swift.org/install/linux/"), "\(what): \(said)")
            #expect(left.isEmpty, "\(what): \(left)")
        }
        serve(archive: OriginResponse(body: archive + [0]))
        try await refuse("another archive", "the signature of the toolchain is wrong")
        serve(signature: Array(signature.dropLast(8)))
        try await refuse("a cut signature", "the signature of the toolchain is wrong")
        serve(keys: Array("no key".utf8))
        try await refuse("an unknown key", "by a key that is not in \(origin.url("/keys"))")
        serve()
        try await refuse(
            "a key that the server brings", "signed by \(fingerprint), which is not a release key of Swift",
            ["SWIFT_KEYS": String(repeating: "A", count: 40)])
        serve(archive: OriginResponse(body: archive, fault: .truncated(after: archive.count / 2)))
        try await refuse("a cut download", "cannot download http://127.0.0.1:\(origin.port)/swift-6.3.1-release/")
        serve(archive: OriginResponse(status: 404))
        try await refuse("a 404", "404")
        serve(signature: .some(nil))
        try await refuse("no signature", ".tar.gz.sig: The requested URL returned error: 404")
        await origin.stop()
        try await refuse("no server", "cannot download \(origin.url("/keys"))")
        try await refuse(
            "another system", "there is no toolchain for fedora 44", ["OS_RELEASE": folder.path("fedora")])
    }

    @Test("It asks first on a terminal, and wants --yes without one")
    func question() async throws {
        let (status, said) = try await shell("scripts/run --toolchain </dev/null")
        #expect(status == .exited(78) && said.contains("hint: agree with: scripts/run --toolchain --yes"), "\(said)")
        let terminal = try await Tmux(columns: 200, rows: 30, environment: environment)
        try await terminal.type("cd '\(folder.path("tree"))' && clear")
        for (answer, text) in [
            ("n", "nothing was downloaded"), ("", "nothing was downloaded"), ("y", "next: scripts/run"),
        ] {
            try await terminal.type("clear; scripts/run --toolchain; echo ended $?")
            // Not the question of the last round, which stays on the screen until this one clears it.
            var asked = ""
            try await until {
                asked = try await terminal.text
                return asked.contains("Download it? [y/N]") && !asked.contains("\nended ")
            }
            #expect(asked.contains("about 1 GB"), "\(asked)")
            #expect(origin.requests.isEmpty && left.isEmpty)
            try await terminal.type(answer)
            try await until { try await terminal.text.contains("\nended ") }
            let shown = try await terminal.text
            #expect(shown.contains(text), "\(shown)")
            #expect(shown.contains(answer == "y" ? "ended 0" : "ended 75"), "\(shown)")
        }
        #expect(left == ["toolchain"])
    }
}
