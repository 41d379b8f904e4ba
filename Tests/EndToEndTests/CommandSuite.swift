import Foundation
import Glibc
import TestSupport
import Testing

/// Tests of commands.
protocol CommandSuite {}

extension CommandSuite {
    /// Starts `prefetch-coord`.
    func coord(_ words: [String], input: [UInt8]? = nil) async throws -> ChildProcess {
        try await ChildProcess(builtProduct("prefetch-coord"), words, input: input)
    }

    /// `scripts/chaos` with the programs that were built together with the tests, at its end.
    func chaos(_ words: [String]) async throws -> ChildProcess {
        let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        let binaries = builtProduct("prefetch-coord").split(separator: "/").dropLast().joined(separator: "/")
        let chaos = try await ChildProcess(
            "/usr/bin/env", ["bash", "/\(root)/scripts/chaos"] + words, environment: ["BIN": "/\(binaries)"])
        let end = await withTaskCancellationHandler {
            await chaos.wait()
        } onCancel: {
            chaos.signal(SIGTERM)
        }
        // The seed is in it, and with another end the folder that has everything.
        #expect(end == .exited(0), "\(chaos.stdout)\n\(chaos.stderr)")
        return chaos
    }

    /// A program that has ended, whatever its exit code.
    func ended(
        _ words: [String], of product: String = "prefetch-coord", input: [UInt8]? = nil,
        environment: [String: String] = [:]
    ) async throws -> ChildProcess {
        if product == "prefetch-coord", input == nil, environment.isEmpty, let answer = await CommandInside.run(words) {
            return answer
        }
        let child = try await ChildProcess(builtProduct(product), words, environment: environment, input: input)
        await child.wait()
        return child
    }

    /// A program that has ended with this exit code, and has said this on standard error.
    @discardableResult
    func ran(
        _ words: [String], exits code: Int32 = 0, says text: String = "", of product: String = "prefetch-coord",
        input: [UInt8]? = nil, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> ChildProcess {
        let child = try await ended(words, of: product, input: input)
        #expect(
            await child.wait() == .exited(code), "\(words): \(child.stdout)\(child.stderr)",
            sourceLocation: sourceLocation)
        if !text.isEmpty {
            #expect(child.stderr.contains(text), "\(words): \(child.stderr)", sourceLocation: sourceLocation)
        }
        return child
    }
}

/// What has a folder of its own, and what a person does there at a shell.
protocol FolderSuite: CommandSuite {
    var folder: TemporaryDirectory { get }
}

extension FolderSuite {
    /// Writes a text and returns the path of its file.
    func write(_ text: String, _ name: String) -> String {
        folder.write(Array(text.utf8), to: name)
        return folder.path(name)
    }

    /// Writes lines and returns the path of their file.
    func list(_ lines: [String], _ name: String = "urls.txt") -> String {
        write(lines.map { $0 + "\n" }.joined(), name)
    }

    /// The rows of a shard's table, which is of JSON.
    func shardRows(_ number: Int, of out: String = "out") -> [[String: Any]] {
        let text = String(decoding: folder.read("\(out)/0000\(number).jsonl") ?? [], as: UTF8.self)
        return text.split(separator: "\n").compactMap {
            try? JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]
        }
    }

    /// A line of a shell that has ended, in the folder.
    @discardableResult
    func shell(_ line: String, environment: [String: String] = [:]) async throws -> ChildProcess {
        let child = try await ChildProcess(
            "/usr/bin/env", ["-C", folder.path, "bash", "-c", line], environment: environment)
        await child.wait()
        return child
    }
}
