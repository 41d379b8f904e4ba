import Testing

@testable import WebImage

@Suite("AddressPolicy", .timeLimit(.minutes(5)))
struct AddressPolicyTests {
    @Test(
        "Private, reserved and disguised addresses are refused",
        arguments: [
            "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255", "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.2.1", "192.88.99.1", "192.168.1.1",
            "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.1.1.1", "240.0.0.1",
            "255.255.255.255", "::", "::1", "fe80::1", "febf::1", "fec0::1", "fc00::1", "fd12:3456::1", "ff02::1",
            "100::1",
            "2001:db8::1", "3fff::1", "5f00::1", "4000::1", "2001:2::1", "2001:10::1", "2001:20::1", "::127.0.0.1",
            "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:0:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "64:ff9b:1::7f00:1", "2002:7f00:1::", "2002:c0a8:101::1",
            // Teredo: the server, then the client's address inverted.
            "2001:0:7f00:1::", "2001:0:808:808:0:0:80ff:fffe", "2606:4700::5efe:127.0.0.1",
            "2606:4700::200:5efe:10.0.0.1",
            "fe80::5efe:8.8.8.8", "2001:1::4", "2001:5::1", "2001:30::1", "2001:4:111::1", "2001:1ff::1",
        ])
    func refused(text: String) throws {
        let address = try #require(IPAddress(text))
        let reason = AddressPolicy().refusal(of: address, port: 443)
        #expect(reason?.contains(address.description) == true)
        let open = AddressPolicy(allow: ["0.0.0.0/0", "::/0"].compactMap { CIDR($0) })
        #expect(open.refusal(of: address, port: 443) == nil)
    }

    @Test(
        "Public addresses are not",
        arguments: [
            "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255",
            "128.0.0.1",
            "169.253.255.255", "172.15.255.255", "172.32.0.0", "192.0.1.1", "192.167.255.255", "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255", "2606:4700::1111", "2001:4860:4860::8888", "64:ff9b::808:808", "::ffff:8.8.8.8",
            "2002:808:808::1",
            "2001:1::1", "2001:1::3", "2001:3::1", "2001:4:112::1", "2001:200::1",
            "2001:0:808:808:0:0:f7f7:f7f7", "2606:4700::5efe:8.8.8.8",
        ])
    func permitted(text: String) throws {
        #expect(AddressPolicy().refusal(of: try #require(IPAddress(text)), port: 80) == nil)
    }

    @Test(
        "Only web ports, and no service's",
        arguments: [
            (80, true), (443, true), (8080, true), (1024, true), (65_535, true), (22, false), (25, false),
            (1023, false),
            (6379, false), (26_379, false), (11_211, false), (5432, false), (3306, false), (2375, false), (9200, false),
        ])
    func ports(port: Int, isPermitted: Bool) throws {
        let address = try #require(IPAddress("8.8.8.8"))
        #expect((AddressPolicy().refusal(of: address, port: port) == nil) == isPermitted)
        // An open network opens the ports of web servers; others have to be named.
        let open = AddressPolicy(allow: [try #require(CIDR("8.8.8.0/24"))])
        #expect(open.refusal(of: address, port: port) == AddressPolicy().refusal(of: address, port: port))
        let own = AddressPolicy(allow: [try #require(CIDR("10.0.0.0/8"))])
        let inside = try #require(IPAddress("10.0.0.1"))
        #expect((own.refusal(of: inside, port: port) == nil) == isPermitted)
        #expect(own.opens(inside, port: port) == isPermitted)
        let named = AddressPolicy(allow: [try #require(CIDR("10.0.0.0/8:\(port)"))])
        #expect(named.refusal(of: inside, port: port) == nil)
    }

    @Test("A block with a port opens that port alone, and a closed one stays closed")
    func blocksWithPorts() throws {
        let address = try #require(IPAddress("127.0.0.1"))
        let policy = AddressPolicy(allow: [try #require(CIDR("127.0.0.1:8080"))])
        #expect(policy.refusal(of: address, port: 8080) == nil)
        #expect(policy.refusal(of: address, port: 8081) != nil)
        #expect(policy.refusal(of: try #require(IPAddress("::ffff:127.0.0.1")), port: 8080) == nil)
        let redis = AddressPolicy(
            allow: [try #require(CIDR("127.0.0.0/8"))], deny: [try #require(CIDR("127.0.0.1:6379"))])
        #expect(redis.refusal(of: address, port: 6379) == "127.0.0.1 port 6379 is closed by the operator")
        #expect(redis.refusal(of: try #require(IPAddress("::ffff:127.0.0.1")), port: 6379) != nil)
        #expect(redis.refusal(of: address, port: 80) == nil)
    }

    @Test(
        "A closed address stays closed in every form that leads to it",
        arguments: [
            "10.0.0.5", "::ffff:10.0.0.5", "::10.0.0.5", "64:ff9b::a00:5", "2002:a00:5::1", "2606:4700::5efe:10.0.0.5",
        ])
    func denied(text: String) throws {
        let open = ["0.0.0.0/0", "::/0"].compactMap { CIDR($0) }
        let address = try #require(IPAddress(text))
        let policy = AddressPolicy(allow: open, deny: [try #require(CIDR("10.0.0.0/24"))])
        #expect(policy.refusal(of: address, port: 80) == "\(address) port 80 is closed by the operator")
        let port = AddressPolicy(allow: open, deny: [try #require(CIDR("10.0.0.5:9090"))])
        #expect(port.refusal(of: address, port: 9090) != nil)
        #expect(port.refusal(of: address, port: 80) == nil)
    }

    @Test(
        "Blocks are parsed",
        arguments: [
            ("127.0.0.0/8", "127.9.9.9", 5, true), ("127.0.0.0/8", "128.0.0.1", 5, false),
            ("0.0.0.0/0", "9.9.9.9", 5, true),
            ("10.0.0.5", "10.0.0.5", 5, true), ("10.0.0.5", "10.0.0.6", 5, false),
            ("10.0.0.5:80", "10.0.0.5", 80, true),
            ("10.0.0.0/8:80", "10.0.0.5", 81, false), ("::1", "::1", 5, true), ("[::1]:80", "::1", 80, true),
            ("[::1]:80", "::1", 81, false), ("[fd00::/8]:80", "fd12::1", 80, true), ("fd00::/8", "fe00::1", 80, false),
            ("2001:db8::/33", "2001:db8:8000::", 1, false), ("::/0", "10.0.0.1", 1, false), ("::1/128", "::1", 1, true),
            ("2001:db8::/64", "2001:db8::ffff", 1, true), ("2001:db8::/65", "2001:db8::8000:0:0:1", 1, false),
        ])
    func blocks(text: String, address: String, port: Int, isIn: Bool) throws {
        let block = try #require(CIDR(text))
        #expect(block.contains(try #require(IPAddress(address)), port: port) == isIn)
        #expect(block.description == text)
    }

    @Test(
        "What is no block is none",
        arguments: [
            "", "localhost", "127.0.0.1/33", "127.0.0.1/-1", "127.0.0.1/", "127.0.0.1:0", "127.0.0.1:65536",
            "127.0.0.1:+1",
            "127.1", "::1/129", "[::1", "[::1]80", "[::1]:", "300.0.0.1", "127.0.0.0/8/8", "fe80::1%eth0",
        ])
    func notABlock(text: String) { #expect(CIDR(text) == nil) }

    @Test("An address prints as it was written", arguments: ["127.0.0.1", "::1", "2606:4700::1111", "::ffff:1.2.3.4"])
    func prints(text: String) { #expect(IPAddress(text)?.description == text) }
}
