import Origin
import Testing

@testable import WebImage

/// Behind a proxy nothing is dialled here, so what a URL names is judged by its text, as curl would ask for it.
@Suite("ImageDownloader, a proxy and private addresses", .timeLimit(.minutes(5)))
struct ProxyTargetTests {
    /// Every spelling that is refused when it is dialled, and those that only matter as text.
    static let hosts =
        ImageDownloaderAddressTests.hosts + [
            "2130706433.", "0x7f.1.", "127.1.", "0x7F000001", "0000000000000000177.0.0.01", "0xa9.254.0251.254",
            "127.0.0.1..",
            "[::ffff:0x7f.1]", "[::1%25eth0]", "[fe80::1%eth0]", "%31%32%37.0.0.1", "127%2e0%2e0%2e1", "loc%61lhost",
            "１２７.０.０.１", "１２７。０。０。１", "127．0．0．1", "127｡0｡0｡1", "２１３０７０６４３３", "①②⑦.0.0.1", "０x7f.1", "０１７７.0.0.1",
            "ｌｏｃａｌｈｏｓｔ", "LOCALHOST.", "ⓛocalhost", "www.localhost", "a.b.LocalHost.", "localhost.localdomain",
            "ip6-localhost",
            "localhost6", "256.256.256.256", "1.2.3.4.5", "4294967296", "0x100000000", "127.0.0.08", "010.0.0.1.2",
            "1.2.3.0x",
            "８.8.8.010", "０10.0.0.1",
        ]

    @Test("A proxy is never asked for a private address or for localhost, whatever the spelling", arguments: hosts)
    func refused(host: String) async throws {
        let proxy = try OriginServer()
        let target = "http://\(host):8099/latest/meta-data"
        proxy.setFallback { $0.path.hasSuffix("/hop") ? .redirect(to: target) : OriginResponse(body: [1]) }
        let downloader = try makeDownloader {
            $0.addressPolicy = AddressPolicy()
            $0.proxy = proxy.url("")
            $0.maxTries = 1
        }
        for url in [target, "http://public.example/hop"] {
            let error = await downloader.failure(url)
            #expect(error?.code == .refused || error?.code == .invalidURL, "\(url): \(String(describing: error))")
        }
        #expect(proxy.requests.map(\.path) == ["http://public.example/hop"])
    }

    @Test(
        "Names and public addresses are the proxy's to judge",
        arguments: [
            "public.example", "8.8.8.8", "0x08080808", "134744072", "[2606:4700::1111]", "localhost.example",
            "notlocalhost",
            "1.example", "0x7f.example", "bücher.example", "_x.example", "127.0.0.1.nip.io",
        ])
    func permitted(host: String) async throws {
        let proxy = try OriginServer()
        proxy.setFallback { _ in OriginResponse(body: [1]) }
        let downloader = try makeDownloader {
            $0.addressPolicy = AddressPolicy()
            $0.proxy = proxy.url("")
        }
        #expect(await downloader.failure("http://\(host)/") == nil)
        #expect(proxy.requests.count == 1)
    }

    @Test(
        "A name's port is a web server's behind a proxy too, on each hop, unless the operator names it",
        arguments: [
            (22, false), (25, false), (81, false), (2375, false), (6379, false), (10_250, false), (11_211, false),
            (80, true), (443, true), (8080, true), (3128, true),
        ])
    func ports(port: Int, isPermitted: Bool) async throws {
        let proxy = try OriginServer()
        let target = "http://service.example:\(port)/x"
        proxy.setFallback { $0.path.hasSuffix("/hop") ? .redirect(to: target) : OriginResponse(body: [1]) }
        for allow in [[], ["10.0.0.0/8"], ["10.0.0.0/8:\(port)"]] {
            let downloader = try makeDownloader {
                $0.addressPolicy = AddressPolicy(allow: allow.compactMap { CIDR($0) })
                $0.proxy = proxy.url("")
                $0.maxTries = 1
            }
            let isOpened = isPermitted || allow.first?.contains(":") == true
            for url in [target, "http://public.example/hop"] {
                let error = await downloader.failure(url)
                #expect((error == nil) == isOpened, "\(url) \(allow) \(String(describing: error))")
                if !isOpened { #expect(error?.outcome == .refused && error?.reason == .closedNetwork) }
            }
        }
        #expect(proxy.requests.count { $0.path.hasSuffix("/x") } == (isPermitted ? 6 : 2))
    }

    @Test("What the operator opens goes to the proxy, in every spelling of it, and what is closed does not")
    func opened() async throws {
        let proxy = try OriginServer()
        proxy.setFallback { _ in OriginResponse(body: [1]) }
        let downloader = try makeDownloader {
            $0.addressPolicy = AddressPolicy(
                allow: ["127.0.0.0/8"].compactMap { CIDR($0) }, deny: ["127.0.0.1:9090"].compactMap { CIDR($0) })
            $0.proxy = proxy.url("")
        }
        downloader.blockedEndpoints.blockOnThisMachine(port: 7399, reason: "the queue's Redis")
        for host in ["127.0.0.1", "2130706433", "localhost"] {
            #expect(await downloader.failure("http://\(host):8080/") == nil)
            for port in [9090, 7399, 6379] {
                #expect(await downloader.failure("http://\(host):\(port)/")?.code == .refused, "\(host) \(port)")
            }
        }
        #expect(await downloader.failure("http://10.1:8080/")?.refusedAddress == "10.0.0.1:8080")
        #expect(proxy.requests.count == 3)
    }
}
