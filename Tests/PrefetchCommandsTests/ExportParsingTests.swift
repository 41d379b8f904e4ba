import ArgumentParser
import Testing

@testable import PrefetchCommands

@Suite("Words behind export, retry and rm")
struct ExportParsingTests {
    @Test(arguments: [
        ["--to", "jsonl"], ["a", "--to", "jsonl"], ["--to", "jsonl", "a"], ["--to", "jsonl", "-o", "m", "a"],
        ["--to", "files", "out"], ["--to", "files", "out", "a"], ["--to", "csv"], ["--to", "lock", "-o", "x"],
        ["--to", "failed"], ["--to", "tree", "d"], ["--to", "sdwebimage", "d", "--layout", "v3"],
        ["--to", "webdataset", "d", "b", "--per-shard", "9"], ["a", "--to", "files", "out", "--cache", "c"],
    ])
    func aBatchMayStandInFrontOrBehind(words: [String]) throws {
        _ = try ExportCommand.parse(words)
    }

    @Test(arguments: [
        [], ["a"], ["--to", "xml"], ["--to", "files"], ["--to", "files", ""], ["--to", "jsonl", "a", "b"],
        ["a", "--to", "jsonl", "b"], ["--to", "files", "out", "--output", "x"], ["--to", "jsonl", "--output", ""],
        ["a", "b", "--to", "jsonl"], ["--to", "webdataset", "d", "--per-shard", "0"],
        ["--to", "files", "d", "--layout", "v3"], ["--to", "sdwebimage", "d", "--layout", "v2"],
        ["--to", "csv", "--per-shard", "9"], ["--to", "files", "d", "--caption-column", "c"],
    ])
    func anythingElseIsRefused(words: [String]) {
        #expect(throws: (any Error).self) { try ExportCommand.parse(words) }
    }

    @Test(arguments: [
        ["-n", "0"], ["--max-per-host", "-1"], ["--manifest", "-"], ["--out", ""], ["a", "b"], ["--format", "tree"],
        ["--out", "d", "--format", "csv"],
        ["--out", "d", "--caption-column", "c"], ["--out", "d", "--format", "webdataset", "--caption-column", ""],
    ])
    func aRetryThatMakesNoSenseIsRefused(words: [String]) {
        #expect(throws: (any Error).self) { try RetryCommand.parse(words) }
    }

    @Test(
        "The format of --out",
        arguments: [
            ([], "files"), (["--format", "files"], "files"), (["--format", "tree"], "tree"),
            (["--format", "webdataset"], "webdataset"),
        ])
    func formats(words: [String], form: String) throws {
        for targets in [
            try RunCommand.parse(["urls.txt", "--out", "d"] + words).output.targets(),
            try RetryCommand.parse(["--out", "d"] + words).output.targets(),
        ] { #expect(targets.count == 1 && targets.first?.words.hasPrefix("--to \(form) d") == true) }
        #expect(throws: (any Error).self) { try RunCommand.parse(["urls.txt", "--format", form]) }
    }

    @Test("A folder that looks like an option is a path all the same")
    func paths() {
        #expect(Shell.path("-x") == "./-x" && Shell.path("x") == "x" && Shell.path("/-x") == "/-x")
    }
}
