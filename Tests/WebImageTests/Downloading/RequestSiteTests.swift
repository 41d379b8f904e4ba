import Testing

@testable import WebImage

@Suite("A request's site")
struct RequestSiteTests {
    private static func book() throws -> SiteBook {
        SiteBook(AddressPolicy(allow: [try #require(CIDR("127.0.0.0/8"))]))
    }

    @Test(
        "Has the name that is resolved, the address, and the host that is counted",
        arguments: [
            ("http://h.example/a", "h.example", "h.example", nil, false),
            ("http://h.example:8080/a", "h.example:8080", "h.example", nil, false),
            ("https://A.cdn.example/a", "a.cdn.example", "a.cdn.example", nil, false),
            ("http://127.0.0.1:80/a", "127.0.0.1", nil, "127.0.0.1", true),
            ("http://192.0.2.1/a", "192.0.2.1", nil, "192.0.2.1", false),
            ("http://[2001:db8::1]/a", "[2001:db8::1]", nil, "2001:db8::1", false),
            // An address for curl, but in a spelling that is not checked before its socket is.
            ("http://0x7f.1/a", "0x7f.1", nil, nil, false),
        ] as [(String, String, String?, String?, Bool)])
    func facts(_ url: String, _ host: String, _ name: String?, _ address: String?, _ isOpened: Bool) throws {
        let site = try Self.book().site(of: try RequestURL(url))
        #expect(site.host == host)
        #expect(site.name == name)
        #expect(site.address.map { "\($0)" } == address)
        #expect(site.isOpened == isOpened)
    }

    @Test("Is worked out once, and anew when there are too many")
    func kept() throws {
        let book = try Self.book()
        let first = book.site(of: try RequestURL("http://h0.example/a"))
        #expect(book.site(of: try RequestURL("http://u:p@H0.example:80/b#c")) === first)
        #expect(book.site(of: try RequestURL("https://h0.example/a")) !== first)
        for number in 1...16_384 { _ = book.site(of: try RequestURL("http://h\(number).example/")) }
        #expect(book.site(of: try RequestURL("http://h0.example/a")) !== first)
    }
}
