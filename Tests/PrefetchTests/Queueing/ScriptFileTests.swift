import Foundation
import Redis
import Testing

@testable import Prefetch
@testable import Queue

/// The files of `Sources/Queue/Scripts`: what the program sends of them, and what they say that is in Swift too.
@Suite("The files of the scripts", .timeLimit(.minutes(5)))
struct ScriptFileTests {
    private static let sources = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().appending(path: "Sources/Queue")

    /// The names of the scripts; what several share has a small name.
    private static func names() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: sources.appending(path: "Scripts").path)
            .map { String($0.prefix { $0 != "." }) }.filter { $0.first?.isUppercase == true }.sorted()
    }

    @Test("Each file is the script of its name: flags, name, what it uses of the prelude, and own lines")
    func texts() throws {
        let names = try Self.names()
        #expect(names.count > 30)
        let flags = ["#!lua", "#!lua flags=allow-oom", "#!lua flags=allow-oom,no-writes"]
        let prelude = String(decoding: PackageResources.prelude_lua, as: UTF8.self)
        let definitions = try prelude.matches(of: /(?m)^local (?:function )?(\w+)/).map(\.output).map {
            (line: $0.0, uses: try Regex("\\b\($0.1)\\b"), calls: try Regex("\\b\($0.1)\\("))
        }
        #expect(definitions.count > 40)
        for name in names {
            let file = try Data(contentsOf: Self.sources.appending(path: "Scripts/\(name).lua"))
            let script = QueueScript.script(Array(file))
            let lines = script.source.split(separator: "\n", omittingEmptySubsequences: false)
            #expect(script.name == name)
            #expect(flags.contains(String(lines[0])), "\(name)")
            #expect(lines[1...2] == ["-- \(name)", "local K = KEYS[1]"])
            #expect(!script.source.dropFirst(lines[0].count + 3).contains("--"), "\(name)")
            let last = String(decoding: file, as: UTF8.self).split(separator: "\n").last
            #expect(lines.last == last, "\(name)")
            // What it calls of the prelude is defined in it, and what is defined is used.
            for definition in definitions {
                let isDefined = script.source.contains("\n\(definition.line)")
                let isRight =
                    isDefined
                    ? script.source.matches(of: definition.uses).count > 1
                    : script.source.firstMatch(of: definition.calls) == nil
                #expect(isRight, "\(name): \(definition.line)")
            }
        }
    }

    @Test("Each file is run at one place of the sources")
    func places() throws {
        var run: [String] = []
        let paths = try FileManager.default.subpathsOfDirectory(atPath: Self.sources.path)
        for path in paths where path.hasSuffix(".swift") {
            let text = try String(contentsOf: Self.sources.appending(path: path), encoding: .utf8)
            run += text.matches(of: /(?:script|step)\(PackageResources\.([A-Z]+)_lua\)/).map { String($0.1) }
        }
        #expect(run.sorted() == (try Self.names()))
    }

    @Test("Where nothing is said, the scripts keep as many failed URLs as the sources say")
    func failedLimit() throws {
        let prelude = String(decoding: PackageResources.prelude_lua, as: UTF8.self)
        let limit = try #require(prelude.firstMatch(of: /number\(limits\[1\], (\d+)\)/)?.1)
        #expect(Int(limit) == PrefetchKeys.failedLimitDefault)
    }
}
