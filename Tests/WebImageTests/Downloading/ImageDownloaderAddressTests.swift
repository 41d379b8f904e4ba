import Origin
import Testing

@testable import WebImage

@Suite("ImageDownloader and private addresses", .timeLimit(.minutes(5)))
struct ImageDownloaderAddressTests {
    /// Every way found in the field to write a private address (PayloadsAllTheThings' list of forms, none of its code).
    static let hosts = [
        "127.0.0.1", "127.0.0.2", "127.127.127.127", "127.1", "127.0.1", "127.000.000.001", "0177.0.0.1", "0177.1",
        "0x7f.0.0.1", "0x7f.1", "0x7f000001", "0x7F.0x0.0x0.0x1", "0X7f.0.0.1", "2130706433", "017700000001", "0",
        "0.0.0.0", "0x0",
        "00", "0.0", "10.0.0.1", "0xa.1", "167772161", "012.0.0.1", "172.16.0.1", "0xac.16.1", "192.168.0.1",
        "0xc0a80001", "3232235521",
        "0300.0250.0.1", "192.168.1", "169.254.169.254", "0xa9fea9fe", "0xA9.0xFE.0xA9.0xFE", "2852039166",
        "0251.0376.0251.0376",
        "169.254.43518", "169.16689662", "100.64.0.1", "198.18.0.1", "224.0.0.1", "255.255.255.255", "4294967295",
        "240.0.0.1",
        "[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[0000::1]", "[::127.0.0.1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]",
        "[0:0:0:0:0:ffff:127.0.0.1]", "[::ffff:a9fe:a9fe]", "[::FFFF:10.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b:1::1]",
        "[2002:7f00:1::]", "[fe80::1]", "[fc00::1]", "[fd00:ec2::254]", "[ff02::1]", "[2001:0:7f00:1::]",
        "[2001:db8::1]", "[100::1]",
        "localhost", "LOCALHOST", "localhost.", "127.0.0.1.", "u@127.0.0.1", "8.8.8.8@127.0.0.1",
    ]

    @Test("No spelling of a private address is connected to", arguments: hosts)
    func refused(host: String) async throws {
        let downloader = try makeDownloader {
            $0.addressPolicy = AddressPolicy()
            $0.connectTimeout = 5
            $0.maxTries = 1
        }
        // The port is open: whoever dials is seen.
        let server = try OriginServer(address: "0.0.0.0")
        let error = try #require(await downloader.failure("http://\(host):\(server.port)/latest/meta-data"))
        // A numeral with a final dot is a name to some resolvers.
        #expect(
            error.code == .refused || (host.hasSuffix(".") && error.code == .cannotFindHost),
            "\(host): \(error.message)")
        if error.code == .refused {
            #expect(error.refusedAddress?.hasSuffix(":\(server.port)") == true)
            #expect(!error.isTransient)
        }
        #expect(server.connectionCount == 0)
    }

    @Test("A redirect to a private address is refused, and nothing is sent there")
    func redirected() async throws {
        let target = try OriginServer(address: "127.0.0.2")
        let server = try OriginServer()
        server.route("/", .redirect(to: target.url("/secret")))
        let downloader = try makeDownloader { $0.addressPolicy.allow = ["127.0.0.1"].compactMap { CIDR($0) } }
        let error = await downloader.failure(server.url("/"))
        #expect(error?.code == .refused)
        #expect(error?.refusedAddress == "127.0.0.2:\(target.port)")
        #expect(error?.message == "127.0.0.2 is a loopback address")
        #expect(target.connectionCount == 0)
    }

    @Test("A name with one permitted address is connected to, one without is refused")
    func mixedAddresses() async throws {
        let server = try OriginServer()
        server.setFallback { _ in OriginResponse(body: [1]) }
        // The names are not in `resolve` as far as the policy knows: a policy of its own with both addresses.
        let downloader = try makeDownloader { $0.addressPolicy.allow = ["127.0.0.1"].compactMap { CIDR($0) } }
        // localhost may be ::1 and 127.0.0.1; only the latter is open.
        #expect(try await downloader.download("http://localhost:\(server.port)/").remoteAddress == "127.0.0.1")
    }

    @Test("The endpoint that is closed stays closed")
    func deny() async throws {
        let server = try OriginServer()
        let downloader = try makeDownloader {
            $0.addressPolicy.deny = [CIDR("127.0.0.1:\(server.port)")].compactMap { $0 }
        }
        let error = await downloader.failure(server.url("/"))
        #expect(error?.code == .refused)
        // Nobody can open it, so nobody is told how.
        #expect(error?.refusedAddress == nil)
        #expect(server.connectionCount == 0)
    }

    @Test("A closed address stays closed for a name the operator has given it, and the proxy itself is never closed")
    func denyWins() async throws {
        let server = try OriginServer()
        server.setFallback { _ in OriginResponse(body: [1]) }
        let deny = [CIDR("127.0.0.1:\(server.port)")].compactMap { $0 }
        let named = try makeDownloader {
            $0.addressPolicy.deny = deny
            $0.resolve = ["redis.example:\(server.port):127.0.0.1"]
            $0.connectTo = ["other.example:80:127.0.0.1:\(server.port)"]
        }
        for url in ["http://redis.example:\(server.port)/", "http://other.example/"] {
            #expect(await named.failure(url)?.code == .refused)
        }
        #expect(server.connectionCount == 0)
        let proxied = try makeDownloader {
            $0.addressPolicy.deny = deny
            $0.proxy = server.url("")
        }
        #expect(await proxied.failure("http://public.example/") == nil)
        #expect(await proxied.failure(server.url("/secret"))?.code == .refused)
        #expect(server.requests.map(\.path) == ["http://public.example/"])
    }

    @Test(
        "A place that is closed while downloads run gets no further request, over an open connection either",
        arguments: ["127.0.0.1", "localhost", "127.0.0.2", "[::ffff:127.0.0.1]", "2130706433"])
    func closedLater(host: String) async throws {
        let server = try OriginServer(address: "0.0.0.0")
        server.setFallback { _ in OriginResponse(body: [1]) }
        let downloader = try makeDownloader { $0.maxTries = 1 }
        let url = "http://\(host):\(server.port)/"
        #expect(await downloader.failure(url) == nil)
        let (connections, requests) = (server.connectionCount, server.requests.count)
        downloader.blockedEndpoints.blockOnThisMachine(port: server.port, reason: "the queue's Redis")
        let error = await downloader.failure(url)
        #expect(error?.code == .refused && error?.refusedAddress == nil, "\(error?.message ?? "")")
        #expect(error?.message.hasSuffix("port \(server.port) is the queue's Redis") == true)
        server.route("/there", .redirect(to: url))
        #expect(server.connectionCount == connections && server.requests.count == requests)
    }

    @Test("A closed name is refused whatever it resolves to, by redirect and behind a proxy too")
    func closedName() async throws {
        let server = try OriginServer()
        server.route("/there", .redirect(to: "http://REDIS.example.:\(server.port)/"))
        server.setFallback { _ in OriginResponse(body: [1]) }
        for proxy in [nil, server.url("")] {
            let downloader = try makeDownloader {
                $0.proxy = proxy
                $0.resolve = ["redis.example:\(server.port):127.0.0.1"]
            }
            downloader.blockedEndpoints.close("Redis.example", port: server.port, reason: "the queue's Redis")
            let urls = ["http://redis.example:\(server.port)/"] + (proxy == nil ? [server.url("/there")] : [])
            for url in urls { #expect(await downloader.failure(url)?.code == .refused, "\(url)") }
            #expect(proxy != nil || server.requests.map(\.path) == ["/there"])
        }
        #expect(server.requests.count == 1)
    }
}
