import Testing

@testable import PrefetchCommands

@Suite("Words behind export, retry and rm")
struct ExportParsingTests {
    @Test(arguments: [
        ["--format", "jsonl"], ["a", "--format", "jsonl"], ["--format", "jsonl", "a"],
        ["--format", "jsonl", "-o", "m", "a"],
        ["--format", "files", "--out", "out"], ["--format", "files", "--out", "out", "a"], ["--format", "csv"],
        ["--format", "lock", "-o", "x"],
        ["--format", "failed"], ["--format", "html"], ["a", "--format", "html", "-o", "x", "--overwrite"],
        ["--format", "tree", "--out", "d"], ["--format", "sdwebimage", "--out", "d", "--sdwebimage-version", "v3"],
        [
            "--format", "webdataset", "--out", "d", "b", "--per-shard", "9", "--image-member", "ext", "--sidecar",
            "jsonl",
        ],
        ["--format", "parquet", "--out", "d", "--image-member", "png"], ["--format", "parquet-metadata", "--out", "d"],
        ["a", "--format", "files", "--out", "out", "--cache", "c"],
    ])
    func aBatchMayStandInFrontOrBehind(words: [String]) throws {
        _ = try command(["export"] + words)
    }

    @Test(arguments: [
        ["--format", "xml"], ["--format", "files"], ["--format", "files", "--out", ""],
        ["--format", "jsonl", "a", "b"],
        ["a", "--format", "jsonl", "b"], ["--format", "files", "--out", "out", "--output", "x"],
        ["--format", "jsonl", "--output", ""],
        ["a", "b", "--format", "jsonl"], ["--format", "jsonl", "--out", "d"], ["--format", "html", "--out", "d"],
        ["--format", "webdataset", "--out", "d", "--per-shard", "0"],
        ["--format", "webdataset", "--out", "d", "--image-member", "json"],
        ["--format", "webdataset", "--out", "d", "--image-member", "a.b"],
        ["--format", "parquet", "--out", "d", "--image-member", "ext"],
        ["--format", "parquet", "--out", "d", "--sidecar", "jsonl"],
        ["--format", "parquet-metadata", "--out", "d", "--image-member", "png"],
        ["--format", "files", "--out", "d", "--sdwebimage-version", "v3"],
        ["--format", "sdwebimage", "--out", "d", "--sdwebimage-version", "v2"],
        ["--format", "csv", "--per-shard", "9"], ["--format", "files", "--out", "d", "--caption-column", "c"],
    ])
    func anythingElseIsRefused(words: [String]) {
        #expect(throws: (any Error).self) { try command(["export"] + words) }
    }

    @Test(arguments: [
        ["-n", "0"], ["--max-per-host", "-1"], ["--manifest", "-"], ["--out", ""], ["a", "b"], ["--format", "tree"],
        ["--out", "d", "--format", "csv"],
        ["--out", "d", "--caption-column", "c"], ["--out", "d", "--format", "webdataset", "--caption-column", ""],
    ])
    func aRetryThatMakesNoSenseIsRefused(words: [String]) {
        #expect(throws: (any Error).self) { try command(["retry"] + words) }
    }

    @Test(
        "The format of --out",
        arguments: [
            ([], "files"), (["--format", "files"], "files"), (["--format", "tree"], "tree"),
            (["--format", "webdataset"], "webdataset"), (["--format", "parquet"], "parquet"),
        ])
    func formats(words: [String], form: String) throws {
        for targets in [
            try #require(command(["run", "urls.txt", "--out", "d"] + words) as? RunCommand).targets(),
            try #require(command(["retry", "--out", "d"] + words) as? RetryCommand).targets(),
        ] { #expect(targets.count == 1 && targets.first?.words.hasPrefix("--format \(form) --out d") == true) }
        #expect(throws: (any Error).self) { try command(["run", "urls.txt", "--format", form]) }
    }

    @Test("A folder that looks like an option is a path all the same")
    func paths() {
        #expect(Shell.path("-x") == "./-x" && Shell.path("x") == "x" && Shell.path("/-x") == "/-x")
    }
}
