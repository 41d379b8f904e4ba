import FoundationEssentials
import Testing
import WebImage

@Suite("SDWebImage's file names", .timeLimit(.minutes(5)))
struct SDWebImageFileNameTests {
    /// Digests by md5sum(1).
    private static let names: [(key: String, v3: String, v4: String, v5: String)] = [
        named("", "d41d8cd98f00b204e9800998ecf8427e", ""),
        named("TestImageKey.jpg", "f77fd0b2d2c9780cce3b1cf4f047030a", ".jpg"),
        named("https://placehold.co/50x50.jpg", "e9936aba8d7f7fcca7813d72290de957", ".jpg"),
        named("http://h/a.jpg?b=1", "a5c1a6b89895dbda1a50aaeb40cdae44", ".jpg", v3: ".jpg?b=1"),
        named("http://h/a.jpg?u=http://y/z.png", "0d40f7551875c4016de67c411caa8642", ".jpg", v3: ".png"),
        named("http://example.org", "dab521de65f9250b4cca7383feef67dc", "", v3: ".org"),
        named("http://h/.jpg", "23e7094dc25646c12aa7e620b68535ea", ""),
        named("http://h/a.", "870d9c95c1ed7ac872ffe0e23238936a", ""),
        named("http://h/a.png/", "6edd460e744fb9890f58f09eed2916ac", ".png"),
        named("http://h/a.tar.gz#x.y", "7c377549d96c8830374addb81e9ae9d5", ".gz", v3: ".y"),
        named("http://h/%E5%9B%BE.%6apg", "fba4acf3316efc8a69155b974a96e843", ".jpg", v3: ".%6apg"),
        named("http://h/x.é", "a7843d65b69a010e8d8bd83e9a6a2b2d", ".é"),
        named("http://h/a.b%zz", "f092ed58eea678153e5d3dbe13beed7d", ".b%zz"),
        named("http://h/a.j:pg", "a8d564ca3867fe9d6ced03f1eb0ac98c", ".j:pg", v5: ".jpg"),
        // What would be a path is no extension.
        named("http://h/a.jp%2Fg", "03894e79d57c3e0fc6f909457b958d63", "", v3: ".jp%2Fg"),
        named(longest(222), "d57464106680bb36d5b59fb918bc44f0", ".\(String(repeating: "e", count: 222))"),
        named(
            longest(223), "d7ab1dddd5f8f0392baf490e44f263d4", "",
            v3: ".\(String(repeating: "e", count: 223))"),
    ]

    private static func longest(_ count: Int) -> String { "http://h/x.\(String(repeating: "e", count: count))" }

    private static func named(
        _ key: String, _ digest: String, _ suffix: String, v3: String? = nil, v5: String? = nil
    ) -> (key: String, v3: String, v4: String, v5: String) {
        (key, digest + (v3 ?? suffix), digest + suffix, digest + (v5 ?? suffix))
    }

    @Test("A key has its digest and its extension, by each version's rule", arguments: names)
    func vectors(key: String, v3: String, v4: String, v5: String) {
        #expect(SDWebImageFileName.name(forKey: key, layout: .v3) == v3)
        #expect(SDWebImageFileName.name(forKey: key, layout: .v4) == v4)
        #expect(SDWebImageFileName.name(forKey: key, layout: .v5) == v5)
        #expect(SDWebImageFileName.name(forKey: key) == v5)
    }

    @Test("The key ends at its first NUL, as C strings do, and no name has one")
    func nul() {
        #expect(SDWebImageFileName.name(forKey: "TestImageKey.jpg\0x") == "f77fd0b2d2c9780cce3b1cf4f047030a.jpgx")
        for layout in SDWebImageFileName.Layout.allCases {
            let name = SDWebImageFileName.name(forKey: "http://h/a.j%00p\0g", layout: layout)
            #expect(name?.utf8.contains(0) == false)
        }
    }

    @Test("Nothing leads out of a directory", arguments: SDWebImageFileName.Layout.allCases)
    func oneName(layout: SDWebImageFileName.Layout) {
        for key in ["http://h/a.%2F..%2F..%2Fetc", "a./../../etc", "http://h/a.x%2f", "../..", "http://h/a.\u{2f}b"] {
            let name = SDWebImageFileName.name(forKey: key, layout: layout)
            #expect(name?.contains("/") == false, "\(key)")
            #expect(name?.count ?? 0 >= 32)
        }
    }

    @Test("The extension of a URL is Foundation's")
    func foundation() throws {
        let keys = [
            "http://h/..a.jpg", "http://h/a..jpg", "http://h/a.jpg//", "//h.org/a.png", "a/b.c/d", "mailto:x.y",
            "http://h.org:80/x.webp;v=1", "http://u:p.q@h/x.gif", "http://h/a.jpg?", "x:y/z.png", "http://h/a%2ejpg",
            "?a.b", "http://h/a.b/..", "http://h/a.%20", "http://h/a.b%20c", "http://h/a%20b.jpg",
            "http://h/a.b?c.d#e.f",
            "http://h/#a.b?c", "http://h", "http://h.org/", "http://h/a.b%2Fc.d", "http://[::1]:8080/x.png", "a:b.c",
            "http://h/%F0%9F%8C%84.heic",
        ]
        for key in keys {
            let url = try #require(URL(string: key))
            let name = try #require(SDWebImageFileName.name(forKey: key, layout: .v4))
            #expect(name.dropFirst(33) == url.pathExtension, "\(key)")
        }
    }
}
