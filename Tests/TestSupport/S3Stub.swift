/// `Tests/Stores/s3.py`: a store with a bucket `images` that checks every signature, and misbehaves where it is told to.
package final class S3Stub: Sendable {
    package let url: String
    private let server: ChildProcess

    package init(_ options: [String] = []) async throws {
        let script = "/" + #filePath.split(separator: "/").dropLast(2).joined(separator: "/") + "/Stores/s3.py"
        server = try await ChildProcess(
            "/usr/bin/env",
            ["python3", "-B", script, "--bucket", "images", "--key", "AK", "--secret", "S/K+="] + options)
        try await until { [server] in server.stdout.contains("\n") || !server.isRunning }
        guard server.isRunning else { throw ChildProcess.SpawnError(description: server.stderr) }
        url = String(server.stdout.split(separator: "\n").first ?? "")
    }

    /// What programs need to reach it.
    package var environment: [String: String] {
        [
            "AWS_ACCESS_KEY_ID": "AK", "AWS_SECRET_ACCESS_KEY": "S/K+=", "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": url, "AWS_ENDPOINT_URL_S3": "", "AWS_PROFILE": "", "AWS_SESSION_TOKEN": "",
        ]
    }

    /// Has the next requests fail.
    /// * `query`: like `method=PUT&suffix=.tar&action=503&count=2`.
    package func fail(_ query: String) async throws { try await ask("/-/fault?\(query)", "POST") }

    /// How many requests are still to fail.
    package func faultsLeft() async throws -> String { try await ask("/-/left") }

    /// Answers what hangs.
    package func release() async throws { try await ask("/-/release", "POST") }

    /// Whether a request hangs, or has.
    package func isWaiting() async throws -> Bool { try await ask("/-/waiting") != "0" }

    /// `METHOD KEY?QUERY STATUS` of each request.
    package func log() async throws -> [Substring] { try await ask("/-/log").split(separator: "\n") }

    /// Uploads in parts that were begun and not ended.
    package func uploads() async throws -> Int { Int(try await ask("/-/uploads").prefix { $0.isNumber }) ?? -1 }

    package func keys() async throws -> [String] { try await ask("/-/objects").split(separator: "\n").map(String.init) }

    /// Puts an object, as another program would.
    package func put(_ text: String, as key: String) async throws {
        try await ask("/-/object/\(key)", "PUT", ["--data-binary", text])
    }

    /// Saves the object of a key as a file.
    package func save(_ key: String, as path: String) async throws {
        let key = key.utf8.map { "%" + ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        try await ask("/-/object/\(key)", "GET", ["--create-dirs", "-o", path])
    }

    package func delete(_ key: String) async throws { try await ask("/-/object/\(key)", "DELETE") }

    @discardableResult private func ask(
        _ path: String, _ method: String = "GET", _ more: [String] = []
    ) async throws -> String {
        let child = try await ChildProcess("/usr/bin/env", ["curl", "-sSf", "-X", method, url + path] + more)
        guard await child.wait() == .exited(0) else {
            throw ChildProcess.SpawnError(description: "\(method) \(path): \(child.stderr)")
        }
        return child.stdout
    }
}
