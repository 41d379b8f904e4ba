import Testing

@testable import WebImage

@Suite("Rules of names")
struct NameRuleTests {
    private let address = IPAddress("192.0.2.1")!

    @Test("An answer is kept for 60 s to an hour, a refusal for 60 s")
    func lifetimes() {
        var cache = NameCache()
        let (short, long, none) = (cache.name("short"), cache.name("long"), cache.name("none"))
        #expect(short.entry(now: 0) == nil && cache.name("short") === short)
        cache.keep([address], of: short, lifetime: 0, now: 0)
        cache.keep([address], of: long, lifetime: 1e9, now: 0)
        cache.keep(WebImageError(.cannotFindHost, "no such name"), of: none, now: 0)
        for name in [short, none] {
            #expect(name.entry(now: 59) != nil)
            #expect(name.entry(now: 60) == nil)
        }
        #expect(long.entry(now: 3599) == .addresses([address]))
        #expect(long.entry(now: 3600) == nil)
    }

    @Test("The oldest name goes, and one that was kept again is not the oldest")
    func capacity() {
        var cache = NameCache(capacity: 3)
        for name in ["a", "b", "c", "a", "d"] { cache.keep([address], of: cache.name(name), lifetime: 100, now: 0) }
        #expect(cache.count == 3)
        #expect(["a", "c", "d"].allSatisfy { cache.name($0).entry(now: 1) != nil } && cache.count == 3)
        let gone = cache.name("b")
        #expect(gone.entry(now: 1) == nil)
        cache.remove(gone)
        for _ in 0..<100 { cache.keep([address], of: cache.name("d"), lifetime: 100, now: 0) }
        #expect(cache.name("d").entry(now: 1) != nil && cache.count <= 3)
    }

    @Test("A name that is asked for stays, and is another one once it was removed")
    func asked() {
        var cache = NameCache(capacity: 2)
        let asked = cache.name("asked")
        cache.keep([address], of: asked, lifetime: 60, now: 0)
        asked.ask(1)
        for name in ["a", "b", "c"] { cache.keep([address], of: cache.name(name), lifetime: 100, now: 60) }
        #expect(cache.name("asked") === asked && cache.asked.map(\.text) == ["asked"])
        cache.remove(asked)
        let next = cache.name("asked")
        #expect(next !== asked)
        cache.remove(asked)
        #expect(cache.name("asked") === next && cache.asked.isEmpty)
    }

    @Test("Addresses of resolvers, and what is none")
    func servers() {
        #expect(DNSServer("192.0.2.1")?.text == "192.0.2.1:53")
        #expect(DNSServer("192.0.2.1:5353")?.text == "192.0.2.1:5353")
        #expect(DNSServer("2001:db8::1")?.text == "[2001:db8::1]:53")
        #expect(DNSServer("[2001:db8::1]")?.text == "[2001:db8::1]:53")
        #expect(DNSServer("[2001:db8::1]:5353")?.text == "[2001:db8::1]:5353")
        for text in [
            "", "dns.test", "192.0.2.1:", "192.0.2.1:0", "192.0.2.1:65536", "192.0.2.1:+5", "[192.0.2.1]", "[::1",
            "[::1]5",
        ] {
            #expect(DNSServer(text) == nil, "\(text)")
        }
    }

    @Test("Names that need no resolver")
    func special() {
        #expect(SpecialNames.reply(for: "a.b.invalid") == .noName)
        #expect(SpecialNames.reply(for: "invalid") == .noName)
        #expect(SpecialNames.reply(for: "notinvalid") == nil)
        #expect(SpecialNames.reply(for: "localhost") != nil && SpecialNames.reply(for: "a.localhost") != nil)
        #expect(SpecialNames.reply(for: "mylocalhost") == nil)
        #expect(SpecialNames.reply(for: "192.0.2.1") == .addresses([address], lifetime: .infinity))
        let long = Array(repeating: "abcdefg", count: 32).joined(separator: ".")
        for name in ["", ".", "a..b", ".a", String(repeating: "x", count: 64), long] {
            #expect(SpecialNames.reply(for: name) == .noName, "\(name)")
        }
        #expect(SpecialNames.reply(for: String(repeating: "x", count: 63) + ".test") == nil)
    }

    @Test("hosts(5): comments, several names, both families")
    func hosts() {
        let names = HostsFile.parse(Array("127.0.0.1\tlocal LOCAL.test#x\r\n\n#1.2.3.4 no\n::1 local\nbad name\n".utf8))
        #expect(names["local"] == [IPAddress("127.0.0.1")!, IPAddress("::1")!])
        #expect(names["local.test"]?.count == 1 && names.count == 2)
    }

    @Test(
        "How curl looks a host up",
        arguments: [
            ("http://a.test/", "a.test"), ("http://A.Test.:8080/", "a.test."), ("http://127.0.0.1/", nil),
            ("http://0x7f.1/", nil), ("http://2130706433/", nil), ("http://[::1]/", nil), ("http://x1/", "x1"),
        ])
    func lookup(url: String, name: String?) async throws {
        let request = try RequestURL(url)
        #expect(LookupHost(request).name == name)
    }
}
