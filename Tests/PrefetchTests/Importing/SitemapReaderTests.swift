import Testing

@testable import Prefetch

@Suite("Sitemaps", .timeLimit(.minutes(5)))
struct SitemapReaderTests {
    private struct Found: Equatable {
        var kind: SitemapReader.Kind, address: String
    }

    private func read(_ text: String, by size: Int = .max) throws -> [Found] {
        try read(Array(text.utf8), by: size)
    }

    private func read(_ bytes: [UInt8], by size: Int = .max) throws -> [Found] {
        var found: [Found] = []
        var reader = SitemapReader()
        var rest = bytes[...]
        while !rest.isEmpty {
            try reader.read(rest.prefix(size)) { kind, address, _ throws(PrefetchError) in
                found.append(Found(kind: kind, address: address))
            }
            rest = rest.dropFirst(size)
        }
        try reader.finish()
        return found
    }

    @Test("Pages and images, with comments, CDATA, entities and prefixes, however the bytes come")
    func all() throws {
        let text = """
            \u{FEFF}<?xml version="1.0" encoding="UTF-8"?>
            <!-- <url><loc>https://no.example/</loc></url> -- > - -->
            <s:urlset xmlns:s="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:image="x>y" >
              <s:url >
                <s:loc>
                  https://a.example/?x=1&amp;y=%20&#38;&#x7A;
                </s:loc>
                <s:lastmod>2026</s:lastmod><empty/><empty a='/>' />
                <image:image><image:loc><![CDATA[https://a.example/1.jpg?a&b]]]></image:loc><image:title>loc &x</image:title>
                </image:image>
                <image:image><image:loc>https://a.example/漢.png</image:loc></image:image>
                <video:video><video:loc>https://no.example/v</video:loc></video:video>
              </s:url>
              <s:url><s:loc> </s:loc></s:url>
            </s:urlset >
            <!-- end -->
            """
        let expected = [
            Found(kind: .page, address: "https://a.example/?x=1&y=%20&z"),
            Found(kind: .image, address: "https://a.example/1.jpg?a&b]"),
            Found(kind: .image, address: "https://a.example/漢.png"),
        ]
        for size in [1, 2, 3, 5, 64, .max] { #expect(try read(text, by: size) == expected, "in pieces of \(size)") }
        #expect(
            try read("<sitemapindex><sitemap><loc>https://a/1.xml</loc></sitemap></sitemapindex>")
                == [Found(kind: .sitemap, address: "https://a/1.xml")])
        #expect(try read("<urlset/>") == [])
    }

    @Test(
        "What is no sitemap is refused, with the line and the reason",
        arguments: [
            ("", 1, "there is no <urlset>"),
            ("<html><body/></html>", 1, "it begins with <html>"),
            ("<urlset>\n<url>\n</urlset>", 3, "</urlset> closes <url>"),
            ("<urlset>\n<url>", 2, "it ends within <url>"),
            ("<urlset></urlset></urlset>", 1, "</urlset> closes nothing"),
            ("<urlset></urlset><urlset/>", 1, "there is something after its end"),
            ("<urlset></urlset>x", 1, "there is text outside"),
            ("x<urlset></urlset>", 1, "there is text outside"),
            ("<urlset><url><loc", 1, "it ends within <url>"),
            ("<urlset></urlset><!-- ", 1, "it ends within a tag or a comment"),
            ("<urlset>< ></urlset>", 1, "a tag has no name"),
            ("<urlset><></urlset>", 1, "a tag has no name"),
            ("<urlset><url><loc>a&b</loc></url></urlset>", 1, "& is written &amp;"),
            ("<urlset><url><loc>&bomb;</loc></url></urlset>", 1, "there is no entity &bomb;"),
            ("<urlset><url><loc>&#0;</loc></url></urlset>", 1, "there is no entity &#0;"),
            ("<urlset><url><loc>&#xD800;</loc></url></urlset>", 1, "there is no entity &#xD800;"),
            ("<?xml version='1.0'?>\n<!DOCTYPE x [<!ENTITY a 'b'>]>\n<urlset/>", 2, "it has a DOCTYPE"),
        ])
    func malformed(text: String, line: Int, reason: String) throws {
        for size in [1, 3, .max] {
            let error = #expect(throws: PrefetchError.self) { try read(text, by: size) }
            #expect(error?.kind == .unreadableList)
            #expect(
                error?.message.hasPrefix("line \(line) of the sitemap: \(reason)") == true, "\(error?.message ?? "")")
        }
    }

    @Test("Nothing grows without end: tags, addresses, depth")
    func bounds() throws {
        let long = String(repeating: "a", count: SitemapReader.longest + 1)
        for text in [
            "<urlset " + long, "<urlset><url><loc>" + long,
            String(repeating: "<urlset>", count: 1) + String(repeating: "<url>", count: SitemapReader.deepest),
        ] {
            #expect(throws: PrefetchError.self) { try read(text) }
        }
        // Comments and text that is no address may be as long as they like.
        let fine = "<urlset><!--\(long)\(long)--><url><x>\(long)\(long)</x></url></urlset>"
        #expect(try read(fine) == [])
    }

    @Test("Bytes that are no UTF-8, and text of another encoding, are refused")
    func encoding() throws {
        #expect(throws: PrefetchError.self) { try read([0xFF, 0xFE] + Array("<".utf8)) }
        let latin = Array("<urlset><url><loc>https://a/".utf8) + [0xE9] + Array("</loc></url></urlset>".utf8)
        let error = #expect(throws: PrefetchError.self) { try read(latin) }
        #expect(error?.message.hasSuffix("an address is not in UTF-8") == true)
    }

    @Test("Bytes by chance end in addresses or an error, and never in anything else")
    func noise() throws {
        var random = SystemRandomNumberGenerator()
        let pieces = [
            "<", ">", "/", "url", "loc", "urlset", "<urlset>", "<url>", "<loc>", "</loc>", "&", ";", "<!--", "-->",
            "<![CDATA[", "]]>", "\"", "x", "\n", "é",
        ]
        for _ in 0..<2_000 {
            let text = (0..<Int.random(in: 1...30, using: &random)).map { _ in
                pieces.randomElement(using: &random) ?? ""
            }.joined()
            let whole = Result { try read(text) }
            let parts = Result { try read(text, by: 1) }
            switch (whole, parts) {
            case (.success(let one), .success(let other)): #expect(one == other, "\(text)")
            case (.failure(let one), .failure(let other)): #expect("\(one)" == "\(other)", "\(text)")
            default: Issue.record("\(text) is read in one way as a whole, and in another in pieces")
            }
        }
    }
}
