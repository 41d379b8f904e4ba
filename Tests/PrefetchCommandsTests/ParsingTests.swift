import ArgumentParser
import Glibc
import Prefetch
import TestSupport
import Testing
import WebImage

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
        ("1", 1), ("64M", 64 << 20), ("64MiB", 64 << 20), ("64MB", 64_000_000), ("2GiB", 2 << 30), ("3TiB", 3 << 40),
        ("2TB", 2_000_000_000_000), ("5kB", 5000),
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
            "--max-concurrent-downloads", "7", "--allow-net", "127.0.0.0/8", "--allow-net", "[::1]:80",
            "--deny-net", "127.0.0.1:6379", "--header",
            "A: b c",
            "--resolve", "h:80:127.0.0.1", "--connect-to", "a:1:b:2", "--user-agent", "me", "--proxy", "http://p:1",
            "--ca-file", "/ca", "--max-time", "1500ms", "--connect-timeout", "2s", "--timeout", "3s", "--tries", "4",
            "--max-redirects", "1", "--max-size", "1MiB",
            "--max-decode-memory", "3MiB", "--lease", "2s", "--drain-timeout", "5s",
            "--cache-max-age", "7d", "--cache-max-size", "2GiB", "--cache-expire-by", "accessed", "--min-free", "1MB",
            "--rate-per-host", "0.5", "--host-group", "example.org", "--host-failures", "3", "--host-patience", "4s",
            "--no-back-off",
            "--low-speed-limit", "5", "--low-speed-time", "3s", "--retry-on", "dns,404", "--no-resume",
            "--accept-status", "200-299,404", "--accept-type", "image/*", "--netrc", "/n", "--user", "a:b", "--auth",
            "digest", "--auth-host", "h", "--cert", "/c", "--key", "/k", "--ipv4", "--http1", "--download-order",
            "lifo",
            "--header-rule", "h=A: b", "--transfer-log", "/t", "--retry-delay", "2s", "--max-retry-after", "3s",
            "--max-try-time", "4s",
            "--robots", "--respect-x-robots-tag", "--limit-rate", "1MB",
        ]
        let options = try FetchOptions.parse(words)
        let again = try FetchOptions.parse(options.arguments)
        #expect(again.arguments == options.arguments)
        // What may be a secret is on no command line.
        let secret: Set = ["--header", "--header-rule", "--user", "--auth-host", "--proxy"]
        #expect(
            Set(options.arguments.filter { $0.hasPrefix("--") }).union(secret)
                == Set(words.filter { $0.hasPrefix("--") }))
        #expect(secret.isDisjoint(with: options.arguments))
        let document = try InheritedDocument(try options.secrets().encoded)
        for _ in 0..<2 {
            let inherited = try FetchOptions.parse(["--inherited-settings", String(dup(document.descriptor))])
            let secrets = try inherited.secrets()
            #expect(secrets.headers == ["A: b c"] && secrets.headerRules == ["h=A: b"])
            #expect(
                secrets.user == "a:b" && secrets.authHosts == ["h"] && secrets.bearer == nil
                    && secrets.proxy == "http://p:1")
        }
        #expect(throws: PrefetchError.self) { try FetchOptions.parse(["--inherited-settings", "1"]).secrets() }
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
        ["--options", "delayPlaceholder"], ["--options", "retryFailed,nope"], ["--input-format", "xls"],
        ["--finish-at", "%"], ["--finish-at", "1e1%"], ["--finish-at", "0x10"], ["--finish-at", "1.2.3%"],
    ])
    func aBatchOptionThatMakesNoSenseIsRefused(words: [String]) {
        #expect(throws: (any Error).self) { try BatchArguments.parse(words) }
    }

    @Test func optionsOfLoadsHaveFlagsOrNames() throws {
        let flags = try BatchArguments.parse([
            "--refresh-cached", "--honor-cache-control", "--keep-http-validators", "--cache-memory-only",
            "--verify-hits",
            "--handle-cookies", "--allow-invalid-ssl", "--retry-failed", "--from-cache-only",
        ]).options
        let names = try BatchArguments.parse([
            "--options",
            "refreshCached,honorCacheControl,keepHTTPValidators,cacheMemoryOnly,queryDataWhenInMemory, handleCookies,"
                + "allowInvalidSSLCertificates,retryFailed,fromCacheOnly",
        ]).options
        #expect(flags == names && flags.retryFailed && flags.fromCacheOnly && flags.options.names.count == 7)
        #expect(BatchOptions(encoded: flags.encoded) == flags)
        #expect(flags.differences(from: BatchOptions()).contains("option refreshCached"))
        #expect(BatchOptions().differences(from: flags).contains("no option refreshCached"))
        // What a later version may write.
        #expect(BatchOptions(encoded: #"{"options":["later","refreshCached"]}"#).options == .refreshCached)
    }

    @Test func requestOptionsReachTheDownloader() throws {
        let folder = TemporaryDirectory()
        folder.write(Array("machine h login me password pw\n".utf8), to: "netrc")
        folder.write(Array("secret\nrest\n".utf8), to: "token")
        let options = try FetchOptions.parse([
            "--netrc", folder.path("netrc"), "--bearer", "@\(folder.path("token"))", "--auth-host", "B.test",
            "--retry-on", "dns,404", "--no-resume", "--accept-status", "200-204,404", "--accept-type",
            "image/png,image/gif",
            "--header-rule", "h=A: b", "--header-rule", "h=User-Agent:", "--max-time", "5s", "--ipv6", "--http1",
            "--low-speed-limit", "0", "--proxy", "socks5h://127.0.0.1:1", "--retry-delay", "40s", "--max-retry-after",
            "5m", "--max-try-time", "2s",
        ])
        let downloads = try options.downloads(HostLimitOption.parse([]))
        #expect(
            downloads.credentials == [
                Credential(user: "me", password: "pw", hosts: ["h"]), Credential(bearer: "secret", hosts: ["b.test"]),
            ])
        #expect(downloads.retriedErrors == [.dns] && downloads.retriedStatusCodes == [404])
        #expect(downloads.resumeFrom == nil && downloads.acceptableStatusCodes == [200...204, 404...404])
        #expect(downloads.acceptableContentTypes == ["image/png", "image/gif"])
        #expect(
            downloads.maxTime == 2 && downloads.maxTotalTime == 5 && downloads.ipVersion == .v6 && !downloads.usesHTTP2)
        #expect(downloads.maxSlowTime == nil)
        let unlimited = try FetchOptions.parse(["--max-time", "0"]).downloads(HostLimitOption.parse([]))
        #expect(unlimited.maxTotalTime == nil && unlimited.maxSlowTime == nil)
        let known = try FetchOptions.parse(["--contact", "me@example.org"]).downloads(HostLimitOption.parse([]))
        #expect(known.value(forHTTPHeaderField: "User-Agent") == "prefetch/0.1.0 (+me@example.org)")
        for contact in ["me", "", "https://h/a b", "https://h/)(", "https://h/\u{202E}"] {
            #expect(throws: (any Error).self) { try FetchOptions.parse(["--contact", contact]) }
        }
        let plain = try FetchOptions.parse([]).downloads(HostLimitOption.parse([]))
        #expect(plain.maxTotalTime == nil && plain.maxSlowTime == 60 && plain.slowSpeed == 65_536)
        #expect(downloads.lowSpeedLimit == 0 && downloads.proxy == "socks5h://127.0.0.1:1")
        #expect(downloads.retryBaseDelay == 40 && downloads.retryMaxDelay == 40 && downloads.maxRetryAfter == 300)
        let filter = try #require(downloads.headersFilter)
        let agent = HTTPHeader("User-Agent", "x")
        #expect(filter("http://H/a", [agent]) == [HTTPHeader("A", "b")])
        #expect(filter("http://other/a", [agent]) == [agent])
        #expect(throws: PrefetchError.self) {
            try FetchOptions.parse(["--netrc", folder.path("none")]).downloads(HostLimitOption.parse([]))
        }
    }

    @Test func aBatchMayEndEarly() throws {
        let arguments = try BatchArguments.parse(["--deadline", "1.5s", "--finish-at", "99.9%"])
        #expect(arguments.limit == 1500 && arguments.finishAt == "99.9%")
        #expect(try BatchArguments.parse(["--finish-at", "950"]).finishAt == "950")
        #expect(try BatchArguments.parse([]).limit == nil)
    }

    @Test(arguments: [
        ["--allow-net", "10.0.0.0/33"], ["--deny-net", "redis"], ["--header", "novalue"], ["--tries", "0"],
        ["--max-concurrent-downloads", "0"],
        ["--lease", "500ms"], ["--max-size", "0"], ["--cache-max-size", "0"], ["--cache-max-age", "-1"],
        ["--min-free", "x"], ["--cache-expire-by", "size"], ["--low-speed-limit", "-1"], ["--retry-on", "dns,ftp"],
        ["--retry-on", "200"], ["--retry-delay", "-1"], ["--max-retry-after", "x"],
        ["--accept-status", "99"], ["--accept-status", "300-200"], ["--accept-status", "a"],
        ["--auth", "bearer"], ["--user", "a:b", "--bearer", "t"], ["--auth-host", "h"], ["--key", "/k"],
        ["--ipv4", "--ipv6"], ["--download-order", "random"], ["--header-rule", "A: b"], ["--header-rule", "h=A"],
    ])
    func aFetchOptionThatMakesNoSenseIsRefused(words: [String]) {
        #expect(throws: (any Error).self) { try FetchOptions.parse(words) }
    }

    @Test("@FILE stands for the lines of a file, and a line that cannot be used is named by its number, not its text")
    func secretsOfFiles() throws {
        let folder = TemporaryDirectory()
        folder.write(Array("X-Api-Key: k1\r\n\nPrivate-Token: t\n".utf8), to: "headers")
        folder.write(Array("h=X-Own: 1\ng=X-Own: 2\n".utf8), to: "rules")
        folder.write(Array("me:secret\nmore\n".utf8), to: "user")
        folder.write(Array("http://u:p@10.0.0.1:3128".utf8), to: "proxy")
        let options = try FetchOptions.parse([
            "-H", "A: 1", "-H", "@\(folder.path("headers"))", "--header-rule", "@\(folder.path("rules"))", "--user",
            "@\(folder.path("user"))", "--proxy", "@\(folder.path("proxy"))",
        ])
        let secrets = try options.secrets()
        #expect(secrets.headers == ["A: 1", "X-Api-Key: k1", "Private-Token: t"])
        #expect(secrets.headerRules == ["h=X-Own: 1", "g=X-Own: 2"])
        #expect(secrets.user == "me:secret" && secrets.proxy == "http://u:p@10.0.0.1:3128")
        let downloads = try options.downloads(HostLimitOption.parse([]))
        #expect(downloads.value(forHTTPHeaderField: "private-token") == "t")
        #expect(downloads.credentials == [Credential(user: "me", password: "secret")])
        #expect(downloads.proxy == "http://u:p@10.0.0.1:3128")
        folder.write(Array("A: 1\nSECRET\n".utf8), to: "bad")
        for (option, file) in [("--header", "bad"), ("--header-rule", "bad"), ("--user", "none")] {
            let error = #expect(throws: PrefetchError.self) {
                try FetchOptions.parse([option, "@\(folder.path(file))"]).secrets()
            }
            #expect(error?.kind == .configuration && error?.message.contains(folder.path(file)) == true)
            #expect(error?.message.contains("SECRET") == false)
        }
    }

    @Test("A printed command has all that finds the same queue, and no password")
    func location() throws {
        let folder = TemporaryDirectory()
        folder.write(Array("SECRET\n".utf8), to: "password")
        let file = folder.path("password")
        let given = try RedisLocation.parse([
            "--redis", "redis://me@127.0.0.1:7000/2", "--redis-password-file", file, "--cache=-c", "--trust-cache",
            "--queue", "mine",
        ])
        #expect(
            given.words == " --redis 'redis://me:***@127.0.0.1:7000/2' --redis-password-file \(file) --cache ./-c"
                + " --trust-cache --queue mine")
        let again = try RedisLocation.parse(given.words.split(separator: " ").map { $0.filter { $0 != "'" } })
        #expect(again.words == given.words && again.queue == "mine" && again.trustCache)
        #expect(try RedisLocation.parse([]).words == "")
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
