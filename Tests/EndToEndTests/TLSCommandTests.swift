import Origin
import Redis
import TestSupport
import Testing

@Suite("The commands over TLS", .timeLimit(.minutes(5)))
struct TLSCommandTests: CommandSuite {
    @Test(
        "Where this build has no TLS, rediss:// is refused by name",
        .disabled(if: RedisTLS.isBuiltIn, "this build has TLS"))
    func refused() async throws {
        for arguments in [
            ["status", "--redis", "rediss://127.0.0.1:6380"],
            ["status", "--redis", "rediss://127.0.0.1:6380", "--redis-ca-file", "/etc/ssl/cert.pem"],
        ] {
            let child = try await ran(arguments, exits: 78)
            #expect(child.stderr.contains("asks for TLS, which this build's hiredis cannot do"), "\(child.stderr)")
        }
    }

    @Test("Options of TLS without TLS are a wrong setting, never ignored")
    func stray() async throws {
        for option in ["--redis-ca-file", "--redis-cert", "--redis-key", "--redis-sni"] {
            for place in [["--redis", "redis://127.0.0.1:1"], ["--cache", "/nowhere"]] {
                let child = try await ran(["status", option, "x"] + place, exits: 78)
                #expect(child.stderr.contains("\(option) is for a Redis over TLS"), "\(child.stderr)")
            }
        }
    }

    @Test(
        "submit, a worker and status over TLS, with files from the options or the address",
        .enabled(if: RedisTLS.isBuiltIn, "NOT TESTED HERE: hiredis of this system has no TLS"))
    func works() async throws {
        let certificates = try await RedisCertificates()
        let (server, port) = try await certificates.server(["--tls-auth-clients", "yes"])
        let folder = TemporaryDirectory()
        let origin = try OriginServer()
        origin.setFallback { _ in OriginResponse(body: GeneratedImage.png(seed: 1, width: 8, height: 8)) }
        folder.write(Array((0..<30).map { origin.url("/\($0).png") + "\n" }.joined().utf8), to: "urls.txt")
        let (ca, cert, key) = (
            certificates.path("ca.pem"), certificates.path("client.pem"), certificates.path("client.key")
        )
        let options = [
            "--redis", "rediss://127.0.0.1:\(port)/1", "--redis-ca-file", ca, "--redis-cert", cert, "--redis-key", key,
        ]
        try await ran(["submit", folder.path("urls.txt")] + options)
        // The worker command that is printed works as it is.
        let address = "rediss://127.0.0.1:\(port)/1?cacert=\(ca)&cert=\(cert)&key=\(key)"
        let worker = try await ChildProcess(
            builtProduct("prefetch-worker"),
            ["--burst", "--redis", address, "--cache", folder.path("cache"), "--allow-net", "127.0.0.0/8"])
        #expect(await worker.wait() == .exited(0), "\(worker.stderr)")
        let status = try await ran(["status", "--json", "--redis", address])
        #expect(status.stdout.contains(#""state":"done","total":30,"finished":30,"skipped":0"#))
        let stranger = try await ran(["status", "--redis", "rediss://localhost:\(port)"], exits: 78)
        #expect(
            stranger.stderr.contains("not trusted") && stranger.stderr.contains("--redis-ca-file"), "\(stranger.stderr)"
        )
        _ = server
    }
}
