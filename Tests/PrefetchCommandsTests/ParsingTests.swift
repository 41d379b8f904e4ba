import ArgumentParser
import Glibc
import Prefetch
import TestSupport
import Testing
import WebImage

@testable import PrefetchCommands

@Suite(.timeLimit(.minutes(5)))
struct ParsingTests {
    private func worker(_ words: [String]) throws -> WorkerCommand {
        try #require(SettingWords.parse(WorkerCommand.self, words) as? WorkerCommand)
    }

    @Test("The pixels of an image are limited by its worker; the workers of a run follow the batch")
    func pixels() throws {
        #expect(try worker([]).fetch.record.maxPixels == 500_000_000)
        #expect(try worker(["--max-pixels", "800M"]).fetch.record.maxPixels == 800_000_000)
        for (words, most) in [([], 500), (["--max-pixels", "1M"], 500), (["--max-pixels", "800M"], 800)]
            as [([String], Int)]
        {
            let run = try #require(command(["run", "list.txt"] + words) as? RunCommand)
            var batch = try run.batch.settings()
            let settings = try run.workerSettings(&batch)
            #expect(settings.maxPixels == most * 1_000_000 && settings.imageLimits.maxPixels == settings.maxPixels)
        }
        let settings = try worker(["--max-decode-memory", "1GiB"]).fetch.record.complete()
        #expect(settings.imageLimits.maxMemory == 1 << 30)
        #expect(FetchSettings().imageLimits.maxMemory == 256 << 20)
    }

    @Test(arguments: [
        ("15", 15.0), ("15s", 15), ("250ms", 0.25), ("2m", 120), ("24h", 86_400), ("7d", 604_800), ("0", 0),
        ("2w", 1_209_600),
    ])
    func timesHaveUnits(text: String, seconds: Double) {
        #expect(TimeSpan(argument: text)?.seconds == seconds)
    }

    @Test(arguments: ["", "s", "-1", "1y", "1 s", "nan", "inf", "1e999"])
    func whatIsNoTimeIsRefused(text: String) {
        #expect(TimeSpan(argument: text) == nil)
    }

    @Test(
        "An age needs its unit, 0 needs none",
        arguments: [
            ("7d", 604_800.0), ("12h", 43_200), ("500ms", 0.5), ("1w", 604_800), ("0", 0), ("0s", 0), ("0.0", 0),
        ])
    func ages(text: String, seconds: Double) {
        #expect(Age(argument: text)?.seconds == seconds)
    }

    @Test(arguments: ["7", "15", "0.5", "1e3", "", "d", "-1d", "7y", "7 d", "7\u{665}"])
    func whatIsNoAgeIsRefused(text: String) {
        #expect(Age(argument: text) == nil)
    }

    private static let sizes: [(String, Int)] = [
        ("1", 1), ("64M", 67_108_864), ("64MiB", 67_108_864), ("64MB", 64_000_000), ("2GiB", 2_147_483_648),
        ("3TiB", 3_298_534_883_328), ("2TB", 2_000_000_000_000), ("5kB", 5000), ("1m", 1_048_576),
        ("2.5MB", 2_500_000), ("1.5k", 1536), ("200K", 204_800), ("3gb", 3_000_000_000),
    ]

    @Test("Sizes as curl, wget and people write them", arguments: sizes)
    func sizesHaveUnits(text: String, bytes: Int) {
        #expect(ByteSize(argument: text)?.bytes == bytes)
    }

    @Test(arguments: ["", "0", "-1", "1.5", "1e3", "infM", "1.2.3M", "M", "9999999999999999999", "9999999999G"])
    func whatIsNoSizeIsRefused(text: String) {
        #expect(ByteSize(argument: text) == nil)
    }

    @Test func allowedSkipsAreANumberOrAShare() throws {
        let ten = try #require(PrefetchSettings.Share(argument: "10"))
        #expect(ten.allows(10, of: 20) && !ten.allows(11, of: 1_000_000))
        let percent = try #require(PrefetchSettings.Share(argument: "1%"))
        #expect(percent.allows(10, of: 1000) && !percent.allows(11, of: 1000))
        for text in ["", "%", "-1", "101%", "1.5", "x"] { #expect(PrefetchSettings.Share(argument: text) == nil) }
    }

    @Test("A run hands its fetch options to its workers in one document, all of them, and none on a command line")
    func inheritedSettings() throws {
        let folder = TemporaryDirectory()
        folder.write(Array("machine h login me password pw\n".utf8), to: "netrc")
        let words = [
            "--max-concurrent-downloads", "7", "--allow-net", "127.0.0.0/8", "--allow-net", "[::1]:80",
            "--deny-net", "127.0.0.1:6379", "--header", "A: b c", "--connect-to",
            "a:1:b:2", "--proxy", "http://p:1", "--ca-file", "/ca", "--max-decode-memory", "3MiB", "--lease", "2s",
            "--drain-timeout", "5s", "--cache-max-age", "7d", "--cache-max-size", "2GiB",
            "--min-free", "1MB", "--netrc", folder.path("netrc"), "--user", "a:b",
            "--cert", "/c", "--key", "/k", "--ip", "4", "--http2", "--download-order", "lifo", "--header-rule",
            "h=A: b", "--transfer-log", "/t", "--limit-rate", "1MB", "--cache-mode", "0770",
            "--read-only-cache", "/r", "--dns-servers", "192.0.2.1,[2001:db8::1]:53",
            "--allow-host", "*.example.org", "--deny-host", "x.example.org", "--url-filter", "a+", "--max-pixels",
            "800M", "--log-format", "json", "--validate", "header", "--max-size", "1GiB", "--limit-rate-of-queue",
            "2MB", "--sandbox", "off",
        ]
        let settings = try worker(words).fetch.record.complete([:])
        // Every member but the token, which excludes the name and password, differs from its default.
        let (given, usual) = (Mirror(reflecting: settings).children, Mirror(reflecting: FetchSettings()).children)
        for (one, other) in zip(given, usual) where one.label != "bearer" {
            #expect("\(one.value)" != "\(other.value)", "\(one.label ?? "")")
        }
        var handed = RunWorker.Document(settings)
        handed.tellsResult = false
        let document = try InheritedDocument(handed.encoded)
        for _ in 0..<2 { #expect(try RunWorker.Document(inherited: dup(document.descriptor)) == handed) }
        #expect(throws: PrefetchError.self) { try RunWorker.Document(inherited: 1) }
        #expect(settings.share(of: 3).limitRate == 333_333)
    }

    @Test("A number of transfers is one, or auto; both reach the workers of a run, with what each needs")
    func concurrency() throws {
        let auto = try FetchWords.parse([]).record.complete()
        #expect(auto.maxConcurrentDownloads == .auto)
        #expect(try FetchWords.parse(["--max-concurrent-downloads", "auto"]).record.complete() == auto)
        let handed = RunWorker.Document(auto)
        let document = try InheritedDocument(handed.encoded)
        #expect(try RunWorker.Document(inherited: dup(document.descriptor)) == handed)
        let downloads = try auto.downloads(environment: [:])
        #expect(downloads.maxConcurrentDownloads == 16 && downloads.maxStalledDownloads == 2048)
        #expect(DescriptorBudget(limit: 128).note(wanted: .auto) == nil)
        #expect(DescriptorBudget(limit: 128).note(wanted: 32) != nil)
    }

    @Test("Resolvers are addresses with commas between, and nothing else")
    func resolvers() throws {
        let words = ["--dns-servers", "192.0.2.1,192.0.2.2:5353,[2001:db8::1]:53"]
        let settings = try FetchWords.parse(words).record.complete()
        #expect(try settings.downloads(environment: [:]).dnsServers == settings.dnsServers)
        #expect(settings.dnsServers.count == 3)
        for text in ["", "dns.example.org", "192.0.2.1,", "192.0.2.1:0", "192.0.2.1 192.0.2.2"] {
            #expect(throws: (any Error).self, "\(text)") { try FetchWords.parse(["--dns-servers", text]) }
        }
    }

    @Test("A proxy has a scheme that proxies have, or none")
    func proxies() throws {
        func downloads(_ proxy: String) throws -> ImageDownloader.Configuration {
            try FetchWords.parse(["--proxy", proxy]).record.complete().downloads(environment: [:])
        }
        for proxy in [
            "10.0.0.1:3128", "HTTP://p:1", "https://p", "socks4://p", "socks4a://p", "socks5://p", "socks5h://p",
        ] {
            #expect(try downloads(proxy).proxy == proxy)
        }
        for proxy in ["ftp://p:21", "socks://p", "://p"] {
            let error = #expect(throws: PrefetchError.self, "\(proxy)") { try downloads(proxy) }
            #expect(
                error?.message.hasPrefix("a proxy has the scheme http, https, socks4, socks4a, socks5, socks5h, not ")
                    == true)
        }
    }

    @Test("A worker of a run reads the words that the run has written, and no others")
    func runWorker() throws {
        var given = RunWorker(redis: "unix:///s/redis/redis.sock?db=0", cache: "/c d")
        #expect(RunWorker(given.words) == nil, "without its document it is a command that somebody typed")
        (given.queue, given.showsSecrets) = ("q", true)
        for words in [given.words, RunWorker(redis: "unix:///r", cache: "./c").words] {
            let read = try #require(RunWorker(words + [WorkerSupervisor.inheritedOption, "7"]))
            let noting = try #require(RunWorker(words + [WorkerSupervisor.inheritedOption, "7,9,1"]))
            #expect(read.notes == nil && noting.inherited == 7)
            #expect(noting.notes?.descriptor == 9 && noting.notes?.worker == 1)
            #expect(read.words == words && read.inherited == 7)
            // By hand, as the hint of a worker that cannot work says, they are options of the program.
            _ = try worker(words)
        }
        for more in [["--burst"], ["--lease", "2s"], ["health"], ["--redis"]] {
            #expect(RunWorker([WorkerSupervisor.inheritedOption, "7"] + more) == nil)
        }
    }

    @Test("What a batch asks of requests is in its record, reaches the downloader, and is told where it differs")
    func requestSettings() throws {
        let words = [
            "--max-time", "1500ms", "--connect-timeout", "2s", "--timeout", "3s", "--tries", "4",
            "--max-size", "1MiB", "--rate-per-host", "0.5",
            "--robots", "--ignore-robots-tag", "--own-host", "*.Example.org", "--max-per-host", "9",
            "--allow-host", "example.org", "--deny-host", "x.example.org", "--url-filter", "a+",
        ]
        var options = try BatchWords.parse(words).settings().options
        options.requests.headers = ["User-Agent: me", "Referer: http://h/", "Accept:"]
        #expect(BatchOptions(encoded: options.encoded) == options)
        let differences = options.differences(from: BatchOptions())
        let flags = Set(words.filter { $0.hasPrefix("--") }).union(["--header"])
        #expect(Set(differences.compactMap { $0.split(separator: " ").first.map(String.init) }) == flags)
        #expect(differences.contains("--timeout 3s, was 15s") && !"\(differences)".contains("http://h/"))
        let table = Set(RequestSettings.settings.map(\.about.flag))
        #expect(table == flags.union(["--contact"]))
        var downloads = ImageDownloader.Configuration()
        options.requests.apply(to: &downloads, maxBytes: 4 << 30)
        try downloads.validate()
        #expect(
            downloads.headers.map(\.name) == ["User-Agent", "Referer"]
                && downloads.headers.map(\.value) == ["me", "http://h/"])
        #expect(downloads.connectTimeout == 2 && downloads.downloadTimeout == 3)
        #expect(downloads.maxTotalTime == 1.5 && downloads.maxSlowTime == nil && downloads.maxTries == 4)
        #expect(downloads.maxBodyBytes == 1 << 20)
        #expect(
            downloads.asksRobots && !downloads.respectsRobotsTag
                && HostPatterns(downloads.ownHosts).contains("a.EXAMPLE.org".lowercased()))
        #expect(downloads.urlFilters.count == 2 && downloads.workerFilters.isEmpty)
        #expect(downloads.hosts.requestsPerSecond == 0.5 && downloads.maxConnectionsPerHost == 9)
        // A worker's maximum.
        options.requests.apply(to: &downloads, maxBytes: 1000)
        #expect(downloads.maxBodyBytes == 1000)
        // What is not given stays, what is given replaces.
        let patient = try RequestWords.parse(["--timeout", "60s"]).record
        let merged = options.requests.taking(["timeout"], of: patient)
        #expect(merged.timeout == 60 && merged.tries == 4 && merged.headers == options.requests.headers)
        var none = RequestSettings()
        none.maxTime = 0
        none.maxPerHost = 0
        none.apply(to: &downloads, maxBytes: 1000)
        #expect(downloads.maxTotalTime == nil && downloads.maxSlowTime == nil && downloads.maxConnectionsPerHost == nil)
        let known = try RequestWords.parse(["--contact", "me@example.org"]).record
        known.apply(to: &downloads, maxBytes: 1000)
        #expect(downloads.value(forHTTPHeaderField: "User-Agent") == "prefetch/0.1.0 (+me@example.org)")
    }

    @Test(
        "Commands obey X-Robots-Tag unless they are told not to, or behave as SDWebImage",
        arguments: [([], true), (["--ignore-robots-tag"], false), (["--compat", "sd3"], false)])
    func robotsTag(words: [String], obeys: Bool) throws {
        let options = try BatchWords.parse(words).settings().options
        var downloads = ImageDownloader.Configuration()
        #expect(!downloads.respectsRobotsTag)
        options.requests.apply(to: &downloads, maxBytes: 1000)
        #expect(downloads.respectsRobotsTag == obeys)
        // `retry` changes what is given alone.
        #expect(try RequestWords.parse([]).record == RequestSettings())
    }

    @Test("Whatever stands in a batch's record, its settings are in their ranges")
    func boundedSettings() throws {
        let encoded = """
            {"header":["A: b\\r\\nB: c","no colon","C: d"],"contact":["a b"],"connect_timeout":["-1"],
            "timeout":["1e300"],"max_time":["-5"],"tries":["1000000"],"max_size":["9223372036854775807"],
            "max_per_host":["-7"],"rate_per_host":["0"],"robots":["maybe"],"own_host":5,"max_aspect_ratio":["3"]}
            """
        let options = BatchOptions(encoded: encoded)
        let settings = options.requests
        #expect(settings.headers == ["C: d"] && options.rules.maxAspectRatio == 3)
        var headers = RequestSettings()
        (headers.headers, headers.ownHosts) = (["C: d"], [])
        #expect(settings == headers)
        headers.tries = 1_000_000
        #expect(throws: WebImageError.self) { try headers.check() }
        var downloads = ImageDownloader.Configuration()
        settings.apply(to: &downloads, maxBytes: 4 << 30)
        try downloads.validate()
    }

    @Test(arguments: [
        ["--validate", "full"], ["--refresh-cached=fresh"], ["--durability", "x"], ["--blacklist", "sd6"],
        ["--cache-key", "s/(/x/"],
        ["--cache-key", "path"], ["--name", "a b"], ["--name", "{x}"],
        ["--deadline", "0"], ["--deadline", "0.0001ms"], ["--deadline", "101y"], ["--deadline", "1e9d"],
        ["--options", "delayPlaceholder"], ["--options", "retryFailed,nope"], ["--options", "SDWebImage"],
        ["--options", "SDWebImageDelayPlaceholder"], ["--options", "RetryFailed"], ["--input-format", "xls"],
        ["--tries", "0"], ["--max-size", "0"], ["--max-size", "5GiB"],
        ["--timeout", "0"],
        ["--connect-timeout", "2d"], ["--max-per-host", "-1"], ["--rate-per-host", "0"], ["--contact", "me"],
        ["--contact", ""], ["--contact", "https://h/a b"], ["--contact", "https://h/)("],
        ["--contact", "https://h/\u{202E}"],
        ["--own-host", "http://h/"], ["--own-host", "h:80"], ["--own-host", "*."], ["--own-host", "*"],
        ["--own-host", "a/b"], ["--own-host", ""], ["--own-host", "a b"], ["--own-host", "@h"],
    ])
    func aBatchOptionThatMakesNoSenseIsRefused(words: [String]) {
        #expect(throws: (any Error).self) { try BatchWords.parse(words) }
    }

    @Test(arguments: [
        ["--window", "0"], ["--job-size", "257"], ["--priority", "urgent"], ["--order", "random"],
        ["--finish-at", "0"], ["--finish-at", "0%"], ["--finish-at", "101%"], ["--finish-at", "1.5"],
        ["--finish-at", "%"], ["--finish-at", "1e1%"], ["--finish-at", "0x10"], ["--finish-at", "1.2.3%"],
    ])
    func anOptionOfTheQueueThatMakesNoSenseIsRefused(words: [String]) {
        #expect(throws: (any Error).self) { try SettingOptions<SubmitBatch>.parse(words) }
    }

    @Test("Options of loads have SDWebImage's names, with or without its prefix, and some an option of their own")
    func optionsOfLoads() throws {
        let flags = try BatchWords.parse(
            [
                "--refresh-cached=all", "--allow-invalid-ssl", "--retry-failed", "--options",
                "handleCookies,fromCacheOnly",
            ]
        ).settings().options
        let names = try BatchWords.parse([
            "--options",
            "SDWebImageRefreshCached, handleCookies,SDWebImageAllowInvalidSSLCertificates,SDWebImageRetryFailed,"
                + "SDWebImageFromCacheOnly",
        ]).settings().options
        #expect(flags == names && flags.retryFailed && flags.fromCacheOnly)
        #expect(
            flags.options
                == [.refreshCached, .handleCookies, .allowInvalidSSLCertificates, .retryFailed, .fromCacheOnly])
        #expect(try BatchWords.parse(["--refresh-cached=stale"]).settings().options.options == .honorCacheControl)
        #expect(
            OptionValues.words(["run", "--refresh-cached", "x", "--refresh-cached=stale"]) == [
                "run", "--refresh-cached=all", "x", "--refresh-cached=stale",
            ])
        #expect(BatchOptions(encoded: flags.encoded) == flags)
        let refreshing = try BatchWords.parse(["--options", "refreshCached"]).settings().options
        let usual = try BatchWords.parse([]).settings().options
        #expect(refreshing.differences(from: usual) == ["--options refreshCached, was not given"])
        #expect(usual.differences(from: refreshing) == ["--options not given, was refreshCached"])
        // What a later version may write.
        #expect(BatchOptions(encoded: #"{"options":["later","refreshCached"]}"#).options == .refreshCached)
    }

    @Test func serverOptionsReachTheDownloader() throws {
        let folder = TemporaryDirectory()
        folder.write(Array("machine h login me password pw\n".utf8), to: "netrc")
        folder.write(Array("secret\nrest\n".utf8), to: "token")
        let downloads = try FetchWords.parse([
            "--netrc", folder.path("netrc"), "--bearer", "@\(folder.path("token"))",
            "--header-rule", "h=A: b", "--header-rule", "h=User-Agent:", "--ip", "6", "--http2", "--proxy",
            "socks5h://127.0.0.1:1",
        ]).record.complete().downloads()
        #expect(
            downloads.credentials == [
                Credential(user: "me", password: "pw", hosts: ["h"]), Credential(bearer: "secret"),
            ])
        #expect(downloads.ipVersion == .v6 && downloads.usesHTTP2 && downloads.proxy == "socks5h://127.0.0.1:1")
        let filter = try #require(downloads.headersFilter)
        let agent = HTTPHeader("User-Agent", "x")
        #expect(filter("http://H/a", [agent]) == [HTTPHeader("A", "b")])
        #expect(filter("http://other/a", [agent]) == [agent])
        let plain = try FetchSettings().downloads(environment: [:])
        #expect(!plain.usesHTTP2 && plain.maxTotalTime == nil && plain.maxSlowTime == 60 && plain.slowSpeed == 65_536)
        #expect(plain.maxConnectionsPerAddress == 64 && !plain.limitsTransfersToOpenedAddresses)
        #expect(plain.maxConnectionsPerHost == 6 && !plain.limitsOpenedAddresses && plain.maxBodyBytes == 64 << 20)
        #expect(throws: PrefetchError.self) {
            try FetchWords.parse(["--netrc", folder.path("none")]).record.complete()
        }
    }

    @Test func aBatchMayEndEarly() throws {
        #expect(try BatchWords.parse(["--deadline", "1.5s"]).settings().fields.contains { $0 == ("limit", "1500") })
        for mark in ["99.9%", "950"] {
            let settings = try SettingOptions<SubmitBatch>.parse(["--finish-at", mark]).settings()
            #expect(settings.turn.finishAt?.description == mark)
        }
        #expect(try !BatchWords.parse([]).settings().fields.contains { $0.0 == "limit" })
    }

    @Test(arguments: [
        ["--allow-net", "10.0.0.0/33"], ["--deny-net", "redis"], ["--header", "novalue"], ["--header", "host: a"],
        ["--header", "Transfer-Encoding: chunked"],
        ["--max-concurrent-downloads", "0"], ["--max-concurrent-downloads", "4097"],
        ["--max-concurrent-downloads", "automatic"],
        ["--cache-max-size", "0"], ["--cache-max-age", "-1"],
        ["--min-free", "x"],
        ["--user", "a:b", "--bearer", "t"], ["--key", "/k"], ["--sandbox", "perhaps"],
        ["--ip", "5"], ["--ip", "any"], ["--header-rule", "A: b"],
        ["--header-rule", "h=Content-Length: 1"], ["--header-rule", "h=A"],
        ["--lease", "500ms"], ["--max-decode-memory", "1K"], ["--download-order", "random"], ["--drain-timeout", "-1"],
        ["--cache-mode", "9"], ["--max-pixels", "0"],
    ])
    func anOptionOfAWorkerThatMakesNoSenseIsRefused(words: [String]) {
        #expect(throws: (any Error).self) { try worker(words) }
    }

    @Test("@FILE stands for the lines of a file, and a line that cannot be used is named by its number, not its text")
    func secretsOfFiles() throws {
        let folder = TemporaryDirectory()
        folder.write(Array("X-Api-Key: k1\r\n\nPrivate-Token: t\n".utf8), to: "headers")
        folder.write(Array("h=X-Own: 1\ng=X-Own: 2\n".utf8), to: "rules")
        folder.write(Array("me:secret\nmore\n".utf8), to: "user")
        folder.write(Array("http://u:p@10.0.0.1:3128".utf8), to: "proxy")
        let options = try FetchWords.parse([
            "-H", "A: 1", "-H", "@\(folder.path("headers"))", "--header-rule", "@\(folder.path("rules"))", "--user",
            "@\(folder.path("user"))", "--proxy", "@\(folder.path("proxy"))",
        ])
        let secrets = try options.record.complete()
        #expect(secrets.headers == ["A: 1", "X-Api-Key: k1", "Private-Token: t"])
        #expect(secrets.headerRules == ["h=X-Own: 1", "g=X-Own: 2"])
        #expect(secrets.user == "me:secret" && secrets.proxy == "http://u:p@10.0.0.1:3128")
        let downloads = try secrets.downloads()
        #expect(downloads.value(forHTTPHeaderField: "private-token") == "t")
        #expect(downloads.credentials == [Credential(user: "me", password: "secret")])
        #expect(downloads.proxy == "http://u:p@10.0.0.1:3128")
        folder.write(Array("A: 1\nSECRET\n".utf8), to: "bad")
        for (option, file) in [("--header", "bad"), ("--header-rule", "bad"), ("--user", "none")] {
            let error = #expect(throws: PrefetchError.self) {
                try FetchWords.parse([option, "@\(folder.path(file))"]).record.complete()
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
        let given = try SettingOptions<RedisLocation>.parse([
            "--redis", "redis://me@127.0.0.1:7000/2", "--redis-password-file", file, "--cache=-c", "--state", "s",
            "--queue", "mine",
        ])
        #expect(
            given.words == " --redis 'redis://me:***@127.0.0.1:7000/2' --redis-password-file \(file) --cache ./-c"
                + " --state s --queue mine")
        let again = try SettingOptions<RedisLocation>.parse(
            given.words.split(separator: " ").map { $0.filter { $0 != "'" } })
        #expect(again.words == given.words && again.queue == "mine" && again.state == "s")
        #expect(try SettingOptions<RedisLocation>.parse([]).words == "")
    }
}
