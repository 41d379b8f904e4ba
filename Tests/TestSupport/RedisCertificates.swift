/// Certificates made for one test: an authority (`ca.pem`), a server's for `localhost`, `redis.test` and 127.0.0.1, a client's, and another
/// authority (`other.pem`); and servers that use them.
package struct RedisCertificates: Sendable {
    private struct OpenSSLError: Error, CustomStringConvertible {
        let description: String
    }

    private let folder = TemporaryDirectory()

    /// Makes them with openssl.
    package init() async throws {
        folder.write(Array("subjectAltName=DNS:localhost,DNS:redis.test,IP:127.0.0.1\n".utf8), to: "names")
        let script = """
            set -e
            for ca in ca other; do
                openssl req -x509 -newkey rsa:2048 -nodes -keyout $ca.key -out $ca.pem -days 2 -subj /CN=$ca
            done
            for name in server client; do
                openssl req -newkey rsa:2048 -nodes -keyout $name.key -out $name.csr -subj /CN=$name
                openssl x509 -req -in $name.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out $name.pem -days 2 -extfile names
            done
            """
        let child = try await ChildProcess("/usr/bin/env", ["bash", "-c", "cd '\(folder.path)' || exit; \(script)"])
        guard await child.wait() == .exited(0) else { throw OpenSSLError(description: child.stderr) }
    }

    /// A file: `ca.pem`, `server.key`.
    package func path(_ name: String) -> String { folder.path(name) }

    /// A server that speaks TLS on a port of 127.0.0.1, and clear text on its Unix socket.
    package func server(_ options: [String] = []) async throws -> (RedisServer, port: Int) {
        let port = freePort()
        let server = try await RedisServer(
            options: [
                "--bind", "127.0.0.1", "--tls-port", "\(port)", "--tls-cert-file", path("server.pem"), "--tls-key-file",
                path("server.key"), "--tls-ca-cert-file", path("ca.pem"),
            ] + options)
        return (server, port)
    }
}
