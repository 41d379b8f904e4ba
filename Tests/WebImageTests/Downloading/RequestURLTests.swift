import Testing

@testable import WebImage

@Suite("RequestURL", .timeLimit(.minutes(5)))
struct RequestURLTests {
    @Test(
        "What is sent",
        arguments: [
            ("http://a.example", "http://a.example/"), ("HTTP://A.Example:80/B?C", "http://a.example/B?C"),
            ("https://a:443/x", "https://a/x"), ("https://a:80/x", "https://a:80/x"), ("http://a:/x", "http://a/x"),
            ("http://a/x y\"<>", "http://a/x%20y%22%3C%3E"), ("http://a/ü?ö=ä#frag", "http://a/%C3%BC?%C3%B6=%C3%A4"),
            ("http://a/%zz%20%41", "http://a/%zz%20%41"), ("http://a?x=1", "http://a/?x=1"),
            ("http://a#x", "http://a/"),
            ("http://a/x?y={z}|[1]^`\\", "http://a/x?y=%7Bz%7D%7C%5B1%5D%5E%60%5C"),
            ("http://[::1]:8080/", "http://[::1]:8080/"),
            ("http://u:p@a/x", "http://a/x"), ("http://a@b@c/", "http://c/"), ("http://a\\@b/", "http://a/%5C@b/"),
            ("http://a:08080/x", "http://a:8080/x"), ("http://a:8080/x", "http://a:8080/x"),
            ("http://a:080/", "http://a/"),
            ("http://a/x#", "http://a/x"), ("Http://a/x", "http://a/x"), ("http://@a/x", "http://a/x"),
            ("https://[2001:DB8::1]/x", "https://[2001:db8::1]/x"),
            ("http://a/../../b", "http://a/../../b"), ("http://bücher.example/", "http://bücher.example/"),
        ])
    func sent(url: String, text: String) throws { #expect(try RequestURL(url).text == text) }

    @Test(
        "What is no URL, and what is none of ours",
        arguments: [
            ("", "no scheme"), ("a.example/x", "no scheme"), ("//a/x", "no scheme"), (" http://a/", "no scheme"),
            ("1http://a", "no scheme"),
            ("http:a", "no host"), ("http:/a", "no host"), ("http://", "no host"), ("http:///x", "no host"),
            ("http://:80/", "no host"),
            ("http://u@/", "no host"), ("http://a:b/", "the port"), ("http://a:0/", "the port"),
            ("http://a:65536/", "the port"),
            ("http://a:-1/", "the port"), ("http://a:80:80/", "the port"), ("http://a:+80/", "the port"),
            ("http://[::1/", "a bracket"),
            ("http://[x]/", "no IPv6"), ("http://[127.0.0.1]/", "no IPv6"), ("http://[fe80::1%25eth0]/", "no IPv6"),
            ("http://[::1]x/", "the port"), ("http://a b/", "the host"), ("http://a%41/", "the host"),
            ("http://a,b/", "the host"),
            ("http://a/\r\nX: y", "contains the control character 0xd"),
            ("http://a/\0", "contains the control character 0x0"),
            ("http://a/\t", "contains the control character 0x9"), ("http://%zz@a/", "the credentials"),
        ])
    func invalid(url: String, message: String) {
        let error = #expect(throws: WebImageError.self) { try RequestURL(url) }
        #expect(error?.code == .invalidURL)
        #expect(error?.message.hasPrefix(message) == true, "\(error?.message ?? "")")
    }

    @Test(
        "Other schemes are refused",
        arguments: ["ftp://a/", "file:///etc/passwd", "gopher://a", "data:image/png;base64,", "javascript:1", "ws://a"])
    func schemes(url: String) {
        let error = #expect(throws: WebImageError.self) { try RequestURL(url) }
        #expect(error?.code == .refused)
    }

    @Test("Credentials are decoded and kept apart")
    func credentials() throws {
        let url = try RequestURL("http://us%40er:p%3aw:x@a/")
        #expect(url.user == "us@er")
        #expect(url.password == "p:w:x")
        #expect(url.text == "http://a/")
        #expect(try RequestURL("http://user@a/").password == nil)
        #expect(try RequestURL("http://user:@a/").password == "")
    }

    @Test("A URL of 65,535 bytes is the longest")
    func length() throws {
        let start = "http://a/"
        _ = try RequestURL(start + String(repeating: "x", count: 65_535 - start.utf8.count))
        #expect(throws: WebImageError.self) {
            try RequestURL(start + String(repeating: "x", count: 65_536 - start.utf8.count))
        }
    }

    @Test(
        "Where a redirect leads",
        arguments: [
            ("/x", "http://a:81/x"), ("x", "http://a:81/b/x"), ("../x", "http://a:81/b/../x"),
            ("?q", "http://a:81/b/c?q"),
            ("", "http://a:81/b/c?d"), ("#f", "http://a:81/b/c?d"), ("//e/x", "http://e/x"),
            ("https://e/", "https://e/"),
            ("http://u:p@a:81/x", "http://a:81/x"), ("x:y", ""), ("./x:y", "http://a:81/b/./x:y"),
            ("/ä b", "http://a:81/%C3%A4%20b"),
        ])
    func redirects(location: String, text: String) throws {
        let from = try RequestURL("http://u:p@a:81/b/c?d")
        if text.isEmpty {
            #expect(throws: WebImageError.self) { try from.redirected(to: location) }
        } else {
            let to = try from.redirected(to: location)
            #expect(to.text == text)
            #expect(to.user == nil && to.password == nil)
        }
    }

    @Test("A redirect neither leaves TLS nor http", arguments: ["http://a/", "ftp://a/", "file:///etc/passwd"])
    func downgrade(location: String) throws {
        let error = #expect(throws: WebImageError.self) { try RequestURL("https://a/").redirected(to: location) }
        #expect(error?.code == .refused)
    }
}
