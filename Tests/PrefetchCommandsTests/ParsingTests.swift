import ArgumentParser
import Testing

@testable import PrefetchCommands

@Suite(.timeLimit(.minutes(1)))
struct ParsingTests {
    @Test(arguments: [
        ("15", 15.0), ("15s", 15), ("250ms", 0.25), ("2m", 120), ("24h", 86_400), ("7d", 604_800), ("0", 0),
    ])
    func timesHaveUnits(text: String, seconds: Double) {
        #expect(TimeSpan(argument: text)?.seconds == seconds)
    }

    @Test(arguments: ["", "s", "-1", "1y", "1 s", "nan", "inf", "1e999"])
    func whatIsNoTimeIsRefused(text: String) {
        #expect(TimeSpan(argument: text) == nil)
    }

    @Test(arguments: [
        ("1", 1), ("64M", 64 << 20), ("64MiB", 64 << 20), ("64MB", 64_000_000), ("2GiB", 2 << 30), ("5kB", 5000),
    ])
    func sizesHaveUnits(text: String, bytes: Int) {
        #expect(ByteSize(argument: text)?.bytes == bytes)
    }

    @Test(arguments: ["", "0", "-1", "1.5M", "M", "9999999999G"])
    func whatIsNoSizeIsRefused(text: String) {
        #expect(ByteSize(argument: text) == nil)
    }

    @Test func allowedSkipsAreANumberOrAShare() throws {
        let ten = try #require(AllowedSkips(argument: "10"))
        #expect(ten.allows(10, of: 20) && !ten.allows(11, of: 1_000_000))
        let percent = try #require(AllowedSkips(argument: "1%"))
        #expect(percent.allows(10, of: 1000) && !percent.allows(11, of: 1000))
        for text in ["", "%", "-1", "101%", "1.5", "x"] { #expect(AllowedSkips(argument: text) == nil) }
    }

    @Test func aRunHandsItsFetchOptionsToItsWorkersUnchanged() throws {
        let words = [
            "--max-concurrent-downloads", "7", "--allow-net", "127.0.0.0/8", "--allow-net", "[::1]:80", "--header",
            "A: b c",
            "--resolve", "h:80:127.0.0.1", "--connect-to", "a:1:b:2", "--user-agent", "me", "--proxy", "http://p:1",
            "--ca-file", "/ca", "--max-time", "1500ms", "--connect-timeout", "2s", "--timeout", "3s", "--tries", "4",
            "--max-redirects", "1", "--max-size", "1MiB", "--lease", "2s", "--drain-timeout", "5s",
            "--cache-max-age", "7d", "--cache-max-size", "2GiB", "--cache-expire-by", "accessed", "--min-free", "1MB",
            "--rate-per-host", "0.5", "--host-group", "example.org", "--host-failures", "3", "--host-patience", "4s",
            "--no-back-off",
        ]
        let options = try FetchOptions.parse(words)
        let again = try FetchOptions.parse(options.arguments)
        #expect(again.arguments == options.arguments)
        #expect(Set(options.arguments.filter { $0.hasPrefix("--") }) == Set(words.filter { $0.hasPrefix("--") }))
        let worker = try WorkerCommand.parse(["--redis", "unix:///s", "--cache", "c"] + options.arguments)
        #expect(worker.fetch.arguments == options.arguments)
    }

    @Test(arguments: [
        ["--validate", "full"], ["--digest", "md5"], ["--durability", "x"], ["--blacklist", "sd5"],
        ["--cache-key", "s/(/x/"],
        ["--cache-key", "path"], ["--name", "a b"], ["--name", "{x}"], ["--window", "0"], ["--job-size", "257"],
        ["--priority", "urgent"], ["--order", "random"], ["--keep-details", "-1"],
        ["--deadline", "0"], ["--deadline", "0.0001ms"], ["--deadline", "101y"], ["--deadline", "1e9d"],
        ["--finish-at", "0"], ["--finish-at", "0%"], ["--finish-at", "101%"], ["--finish-at", "1.5"],
        ["--finish-at", "%"], ["--finish-at", "1e1%"], ["--finish-at", "0x10"], ["--finish-at", "1.2.3%"],
    ])
    func aBatchOptionThatMakesNoSenseIsRefused(words: [String]) {
        #expect(throws: (any Error).self) { try BatchArguments.parse(words) }
    }

    @Test func aBatchMayEndEarly() throws {
        let arguments = try BatchArguments.parse(["--deadline", "1.5s", "--finish-at", "99.9%"])
        #expect(arguments.limit == 1500 && arguments.finishAt == "99.9%")
        #expect(try BatchArguments.parse(["--finish-at", "950"]).finishAt == "950")
        #expect(try BatchArguments.parse([]).limit == nil)
    }

    @Test(arguments: [
        ["--allow-net", "10.0.0.0/33"], ["--header", "novalue"], ["--tries", "0"], ["--max-concurrent-downloads", "0"],
        ["--lease", "500ms"], ["--max-size", "0"], ["--cache-max-size", "0"], ["--cache-max-age", "-1"],
        ["--min-free", "x"], ["--cache-expire-by", "size"],
    ])
    func aFetchOptionThatMakesNoSenseIsRefused(words: [String]) {
        #expect(throws: (any Error).self) { try FetchOptions.parse(words) }
    }

    @Test(
        arguments: [
            RunCommand.self, SubmitCommand.self, StatusCommand.self, FailuresCommand.self, FsckCommand.self,
            AppendCommand.self, SealCommand.self, CachePathCommand.self, CacheGetCommand.self, CacheVerifyCommand.self,
            WorkerCommand.self,
        ] as [any ParsableCommand.Type])
    func everyHelpFitsEightyColumnsAndHasAnExample(command: any ParsableCommand.Type) {
        let help = command.helpMessage(columns: 80)
        #expect(help.split(separator: "\n").filter { $0.count > 80 } == [])
        #expect(help.contains("Example"))
    }
}
