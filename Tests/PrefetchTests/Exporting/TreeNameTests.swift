import TestSupport
import Testing
import WebImage

@testable import Prefetch

@Suite("Paths made of URLs", .timeLimit(.minutes(5)))
struct TreeNameTests {
    @Test(
        "A path shows its URL and nothing of it leads elsewhere",
        arguments: [
            ("https://example.org/a/b.jpg", "https/example.org/a/b.jpg"),
            ("https://example.org/a/b.JPG", "https/example.org/a/b.JPG"),
            ("https://example.org/a/b.jpeg", "https/example.org/a/b.jpeg"),
            ("https://example.org/a/b", "https/example.org/a/b~.jpg"),
            ("https://example.org/a/b.png", "https/example.org/a/b.png~.jpg"),
            ("https://example.org/a.jpg/b.jpg", "https/example.org/a.jpg~/b.jpg"),
            ("https://example.org/a.jpg?w=1&h=2", "https/example.org/a.jpg~3fw=1~26h=2~.jpg"),
            ("https://example.org/?a=b.jpg", "https/example.org/~3fa=b.jpg"),
            ("https://example.org", "https/example.org/~~~~.jpg"), ("https://example.org/", "https/example.org/~~.jpg"),
            ("https://example.org/../../etc/passwd", "https/example.org/~2e./~2e./etc/passwd~.jpg"),
            ("https://example.org/%2e%2e/x.jpg", "https/example.org/%2e%2e/x.jpg"),
            ("https://example.org//x.jpg", "https/example.org/~/x.jpg"),
            ("https://example.org/.hidden.jpg", "https/example.org/~2ehidden.jpg"),
            ("https://EXAMPLE.org:8080/x~y.jpg#f", "https/EXAMPLE.org~3a8080/x~7ey.jpg~23f~.jpg"),
            ("https://example.org/ä.jpg", "https/example.org/~c3~a4.jpg"),
        ] as [(String, String)])
    func paths(url: String, path: String) {
        #expect(TreeName.path(of: url, .jpeg) == path)
    }

    @Test("A password does not show")
    func password() {
        let path = TreeName.path(of: "https://user:secret@h/x.jpg", .jpeg)
        #expect(!path.contains("secret") && path.hasSuffix("~~h/x.jpg"))
    }

    @Test("Long URLs have paths that a file system takes, and different ones")
    func long() {
        let one = "https://h/" + String(repeating: "a", count: 4_000) + "1.jpg"
        let two = "https://h/" + String(repeating: "a", count: 4_000) + "2.jpg"
        let deep = "https://h/" + String(repeating: "b/", count: 3_000) + "x.jpg"
        let paths = [one, two, deep].map { TreeName.path(of: $0, .jpeg) }
        #expect(Set(paths).count == 3)
        for path in paths {
            #expect(path.utf8.count < 2_300)
            #expect(path.split(separator: "/").allSatisfy { $0.utf8.count <= 255 })
        }
    }

    @Test("Different URLs have different paths, and no path leaves its folder")
    func different() {
        let parts = ["a", "a.jpg", "a~", "~", ".", "..", "", "%2f", "?", "#", "a~2f", "A", "ä", "~7e", "a.jpg~", "jpg"]
        var seen: [String: String] = [:]
        for one in parts {
            for two in parts {
                for url in [
                    "http://h/\(one)/\(two)", "http://h/\(one)\(two)", "http://\(one)@h/\(two)", "http://h\(one)",
                ] {
                    let path = TreeName.path(of: url, .jpeg)
                    if let other = seen[path] { #expect(other == url, "\(path)") }
                    seen[path] = url
                    let names = path.split(separator: "/", omittingEmptySubsequences: false)
                    #expect(!names.contains("") && !names.contains(".") && !names.contains(".."), "\(path)")
                }
            }
        }
        #expect(seen.count > 500)
    }
}
