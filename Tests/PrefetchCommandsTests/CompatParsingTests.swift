import ArgumentParser
import Testing

@testable import Prefetch
@testable import PrefetchCommands
@testable import prefetch_coord
@testable import Queue

@Suite("Words behind --compat, why, blacklist, workers and cache")
struct CompatParsingTests {
    @Test(arguments: [
        ([], "smart", "404=7d,410=30d,451=30d,badImage=1d,poison=7d", ""),
        (["--blacklist", "none"], "none", "404=7d,410=30d,451=30d,badImage=1d,poison=7d", ""),
        (["--blacklist-ttl", "2h"], "smart", "2h", ""), (["--compat", "sd3"], "sd3", "0s", "sd3"),
        (["--compat", "sd3", "--blacklist", "sd3", "--blacklist-ttl", "0"], "sd3", "0s", "sd3"),
        (["--blacklist", "sd3"], "sd3", "404=7d,410=30d,451=30d,badImage=1d,poison=7d", ""),
        (["--blacklist", "sd4"], "sd4", "404=7d,410=30d,451=30d,badImage=1d,poison=7d", ""),
        (
            ["--blacklist-ttl", "404=90s,badImage=0,poison=1500ms,410=10m"], "smart",
            "404=90s,410=10m,451=30d,badImage=0s,poison=1.5s", ""
        ),
    ])
    func compatStandsForItsOptions(words: [String], blacklist: String, life: String, compat: String) throws {
        let options = try BatchWords.parse(words).settings().options
        #expect(options.blacklist.rawValue == blacklist && options.blacklistTTL.text == life)
        #expect((options.compat?.rawValue ?? "") == compat)
    }

    @Test(arguments: [
        (["--compat", "sd5"], ["--compat is sd3, not 'sd5'"]), (["--compat", ""], ["--compat is sd3"]),
        (["--blacklist", "sd5"], ["--blacklist is smart, sd3, sd4 or none, not 'sd5'"]),
        (["--compat", "sd3", "--blacklist", "smart"], ["--compat sd3", "--blacklist smart"]),
        (["--blacklist", "sd4", "--compat", "sd3"], ["--compat sd3", "--blacklist sd4"]),
        (["--compat", "sd3", "--blacklist-ttl", "1h"], ["--compat sd3", "--blacklist-ttl 1h"]),
        (["--blacklist-ttl", "never"], ["--blacklist-ttl"]), (["--blacklist-ttl", "404="], ["--blacklist-ttl"]),
        (["--blacklist-ttl", "404=1d,500=1d"], ["--blacklist-ttl"]),
        (["--blacklist-ttl", "404=1d,"], ["--blacklist-ttl"]),
    ])
    func whatContradictsItIsNamed(words: [String], says: [String]) {
        let error = #expect(throws: (any Error).self) { try BatchWords.parse(words) }
        let message = error.map { BatchWords.message(for: $0) } ?? ""
        for text in says { #expect(message.contains(text), "\(message)") }
    }

    @Test(arguments: [
        ["why"], ["why", "a", "b"], ["why", "a", "--batches", "-1"], ["why", "a", "--cache-key", "s/(/x/"],
        ["blacklist", "lst"], ["blacklist", "add"], ["blacklist", "rm"], ["blacklist", "rm", "--all", "x"],
        ["blacklist", "import", "x"], ["workers", "x"], ["cache", "ls", "x"], ["cache", "ls", "--summary", "x"],
        ["workers", "--queue", "{x}"],
    ])
    func whatMakesNoSenseIsRefused(words: [String]) {
        #expect(throws: (any Error).self) { try command(words) }
    }

    @Test(arguments: [
        (0, "1970-01-01T00:00:00Z"), (999, "1970-01-01T00:00:00Z"), (1_785_933_667_123, "2026-08-05T12:41:07Z"),
        (951_782_400_000, "2000-02-29T00:00:00Z"), (-1, "1969-12-31T23:59:59Z"),
    ])
    func timesAreUTC(milliseconds: Int, text: String) {
        #expect(UTCTime.text(milliseconds: milliseconds) == text)
        #expect(UTCTime.text(seconds: .max) == "-")
    }

    @Test func nounsHaveTheirNumber() {
        #expect(Wording.count(1, "URL") == "1 URL" && Wording.count(4812, "URL") == "4,812 URLs")
        #expect(Wording.count(0, "batch", "batches") == "0 batches")
    }

    @Test func aFailedURLIsOneSafeLine() {
        let entry = FailedURLEntry(
            meta: "1785933667123 1785933668123 3 1786933668123 httpError 404 urls-7f3a the server says 404")
        let failed = Blacklist.FailedURL(url: "http://me:secret@h/\u{1B}[2J", entry: entry)
        #expect(
            FailedURLText.line(failed)
                == #"http://me:***@h/\x1b[2J  httpError 404  3 times, first 2026-08-05T12:41:07Z, last 2026-08-05T12:41:08Z, by urls-7f3a"#
        )
        #expect(
            failed.json.text
                == #"{"url":"http://me:***@h/\u001b[2J","outcome":"httpError","http_status":404,"first":"2026-08-05T12:41:07Z","last":"2026-08-05T12:41:08Z","count":3,"next":"2026-08-17T02:27:48Z","batch":"urls-7f3a","detail":"the server says 404"}"#
        )
    }
}
