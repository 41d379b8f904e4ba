import Foundation
import TestSupport
import Testing

/// What `scripts/lib/python-tools` installs of PyPI: the readers that others use.
enum PythonTools {
    static let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..").standardized

    /// Whether it can be installed at all.
    static func hasPip() async throws -> Bool {
        let child = try await ChildProcess("/usr/bin/env", ["python3", "-m", "pip", "--version"])
        return await child.wait() == .exited(0)
    }

    /// Where the packages are.
    static func path() async throws -> String {
        let tools = try await ChildProcess(
            "/usr/bin/env", ["bash", root.appending(path: "scripts/lib/python-tools").path()])
        let end = await tools.wait()
        try #require(end == .exited(0), "\(tools.stderr)")
        return tools.stdout.trimmingCharacters(in: .newlines)
    }

    /// What a program says.
    static func run(_ program: String, _ arguments: [String] = []) async throws -> String {
        let child = try await ChildProcess(
            "/usr/bin/env", ["python3", "-c", program] + arguments,
            environment: ["PYTHONPATH": try await path(), "PYTHONDONTWRITEBYTECODE": "1"])
        let end = await child.wait()
        #expect(end == .exited(0), "\(child.stderr)")
        return child.stdout
    }
}

extension Trait where Self == ConditionTrait {
    /// Only where python3 has pip.
    static var needsPip: Self {
        .enabled("python3 has no pip: apt-get install python3-pip") { try await PythonTools.hasPip() }
    }
}
