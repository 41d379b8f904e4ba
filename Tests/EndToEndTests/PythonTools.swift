import Foundation
import TestSupport
import Testing

/// What `scripts/lib/python-tools` installs of PyPI: the readers that others use.
enum PythonTools {
    static let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..").standardized

    /// Where the packages are, those that tests read our output with or `peers`; nil where they cannot be had: no pip, or no PyPI.
    static func folder(_ kind: String...) async throws -> String? {
        let tools = try await ChildProcess(
            "/usr/bin/env", ["bash", root.appending(path: "scripts/lib/python-tools").path()] + kind)
        let end = await tools.wait()
        if [.exited(9), .exited(69)].contains(end) { return nil }
        try #require(end == .exited(0), "\(tools.stderr)")
        return tools.stdout.trimmingCharacters(in: .newlines)
    }

    /// Where the packages are.
    static func path() async throws -> String { try #require(try await folder()) }

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
    /// Only where PyPI's packages can be had. Goes with `.thorough`: `scripts/install-deps --test-all` installs them.
    static var needsPyPI: Self {
        .enabled("python3 has no pip, or cannot reach PyPI: scripts/lib/python-tools says which") {
            guard isThorough else { return true }
            return try await PythonTools.folder() != nil
        }
    }

    /// Only where a store and its readers can be had. Goes with `.thorough`.
    static var needsStores: Self {
        .enabled("python3 has no pip, or cannot reach PyPI: scripts/lib/python-tools stores says which") {
            guard isThorough else { return true }
            let (stores, readers) = (try await PythonTools.folder("stores"), try await PythonTools.folder())
            return stores != nil && readers != nil
        }
    }

    /// Only where the tools that are compared can be had. Goes with `.thorough`.
    static var needsPeers: Self {
        .enabled("python3 has no pip, or cannot reach PyPI: scripts/lib/python-tools peers says which") {
            guard isThorough else { return true }
            let (peers, readers) = (try await PythonTools.folder("peers"), try await PythonTools.folder())
            return peers != nil && readers != nil
        }
    }
}
