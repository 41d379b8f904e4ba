import Testing
import WebImage

@testable import PrefetchModel

/// Patterns of `--url-filter` and `--cache-key`: what they mean, and what they may cost.
@Suite("Patterns over bytes", .timeLimit(.minutes(1)))
struct BytePatternTests {
    private func key(_ filter: String, _ url: String = "http://h/a/b.jpg?v=1") throws -> String {
        try CacheKeyFilter(text: filter).key(for: url)
    }

    @Test("Replacements: groups, names, the whole match, and what is taken as itself")
    func replacements() throws {
        #expect(try key("s/[?].*//") == "http://h/a/b.jpg")
        #expect(try key(#"s|.*/([^/?]+)\?v=(\d+)$|$2-$1|"#) == "1-b.jpg")
        #expect(try key(#"s|.*/([^/?]+)\?v=(\d+)$|\2-\1|"#) == "1-b.jpg")
        #expect(try key("s/(?<name>b)[.]jpg/<${name}${1}0$1>/") == "http://h/a/<bb0b>?v=1")
        #expect(try key("s/a/[$0$&$$]/") == "http://h/[aa$]/b.jpg?v=1")
        // Each match, and an empty one between two characters, as with s///g of Perl.
        #expect(try key("s/x*/-/", "abc") == "-a-b-c-")
        #expect(try key("s/b*/-/", "abc") == "-a--c-")
        // A group that took no part is empty.
        #expect(try key("s/(z)?a/<$1>/", "a") == "<>")
        // A separator behind a backslash is itself in the pattern and in the replacement.
        #expect(try key(#"s/\/a\//\/c\//"#) == "http://h/c/b.jpg?v=1")
        #expect(try key(#"s|b\|z|\||"#) == "http://h/a/b.jpg?v=1")
        #expect(try key(#"s/a/\\\$1/"#, "a") == #"\$1"#)
        let filter = try #require(CacheKeyFilter(#"s|\|x/|\||"#))
        #expect(CacheKeyFilter(filter.description) == filter)
        // Whatever is in it, there is another separator.
        let all = String(String.UnicodeScalarView((1..<0x400).compactMap(Unicode.Scalar.init)))
        for text in ["/|#~!", "/|#~!\u{1}\u{2}", all] {
            let filter = try CacheKeyFilter(replacing: "\\Q\(text)", with: "-")
            #expect(CacheKeyFilter(filter.description) == filter)
        }
        #expect(try key("s\u{301}a\u{301}-\u{301}", "cab") == "c-b")
    }

    @Test("A URL is its bytes: those of UTF-8, and those that are none")
    func bytes() throws {
        #expect(try key(#"s/[\xC3][\xA9]/e/"#, "http://h/é") == "http://h/e")
        // One byte, not one character, and not the other spelling of it.
        #expect(try key("s/h.$/x/", "http://h/\u{E9}") == "http://h/\u{E9}")
        #expect(try key("s/\u{E9}/x/", "http://h/e\u{301}") == "http://h/e\u{301}")
        #expect(try PatternFilter("^[^\\xE9]+$").refusal(of: "http://h/%E9") == nil)
        #expect(try PatternFilter("%E9$").refusal(of: RequestURL("http://h/%E9").text) == nil)
    }

    @Test(
        "What is no pattern or no replacement is refused with the reason and the place",
        arguments: [
            ("(", "missing closing parenthesis, at byte 1"), ("a[b", "missing terminating ] for character class"),
            ("(?C1)a", "callouts are not supported"), ("(*UTF)a", "using UTF is disabled by the application"),
            ("(*UCP)a", "using UCP is disabled by the application"),
            (String(repeating: "a", count: 4_097), "pattern string is longer than the limit"),
            (String(repeating: "(", count: 300), "parentheses are too deeply nested"),
        ])
    func refused(_ pattern: String, _ words: String) {
        let error = #expect(throws: WebImageError.self) { try PatternFilter(pattern) }
        #expect(error?.code == .invalidConfiguration && error?.message.contains(words) == true, "\(error!)")
        #expect(CacheKeyFilter("s~\(pattern)~~") == nil)
        // What another version has queued with it allows nothing.
        let filter = HostFilter.filters(nil, nil, [pattern])[0]
        #expect(((try? filter.refusal(of: "http://h/a")) ?? nil)?.contains(words) == true)
    }

    @Test("A replacement names only groups that there are", arguments: ["$1", "${x}", "$", #"\1"#, "${", "$x", "\\"])
    func wrongReplacements(_ replacement: String) {
        let error = #expect(throws: WebImageError.self) { try CacheKeyFilter(replacing: "a", with: replacement) }
        #expect(error?.message.contains("no such group of a, at byte 0") == true)
    }

    @Test(
        "No URL and no pattern takes more than its steps",
        arguments: [
            ("(a+)+$", String(repeating: "a", count: 40) + "!"),
            ("(a|a)*$", String(repeating: "a", count: 60_000) + "!"),
            // Cheap from each place, but from 60,000 of them; and an item that takes all bytes from each.
            ("(?:.(?!x))*$", String(repeating: "a", count: 60_000)), ("a*?[!c]", String(repeating: "a", count: 60_000)),
            (#"(?=(.*))\1\1$"#, String(repeating: "ab", count: 30_000)),
        ])
    func steps(_ pattern: String, _ path: String) throws {
        let url = "http://h/?\(path)"
        var cost = try #require(Self.steps(pattern, url))
        #expect(cost > 50_000 && cost <= 1_000_000, "\(cost)")
        let error = #expect(throws: WebImageError.self) { try PatternFilter(pattern).refusal(of: url) }
        #expect(error?.code == .invalidURL && error?.outcome == .invalidURL && !error!.mayBeLocal)
        #expect(error?.message.contains("takes more steps than it may on this URL") == true)
        #expect(throws: WebImageError.self) { try CacheKeyFilter(replacing: pattern, with: "").key(for: url) }
        for policy in FailedURLPolicy.allCases { #expect(!policy.lists(error!)) }
        // Usual patterns on usual URLs are far from it.
        cost = try #require(
            Self.steps(#"^https?://[^/]+/.*\.(jpe?g|png)(\?.*)?$"#, "https://cdn.example.org/a/b/c.png?w=1"))
        #expect(cost < 200)
    }

    private static func steps(_ pattern: String, _ url: String) -> Int? {
        (try? BytePattern(pattern))?.steps(on: url)
    }

    @Test("A key is as long as a URL at most")
    func length() {
        let url = "http://h/" + String(repeating: "a", count: 60_000)
        for rule in ["s/./$0$0$0/", "s/(?=(.*))/$1/", "s/$/" + String(repeating: "b", count: 6_000) + "/"] {
            let error = #expect(throws: WebImageError.self) { try CacheKeyFilter(text: rule).key(for: url) }
            #expect(error?.code == .invalidURL)
        }
    }

    @Test("A character that is cut in two gives no key")
    func parts() throws {
        for url in ["http://h/é", "http://h/è"] {
            let error = #expect(throws: WebImageError.self) {
                try CacheKeyFilter(text: #"s/[^ -~]$//"#).key(for: url)
            }
            #expect(error?.code == .invalidURL && error?.message.contains("cuts a character in two") == true)
        }
        // Parts that are whole again.
        #expect(try CacheKeyFilter(text: #"s/(\xc3)/$1/"#).key(for: "http://h/é") == "http://h/é")
        #expect(try CacheKeyFilter(text: "s/[^ -~]+//").key(for: "http://h/éa") == "http://h/a")
    }
}
