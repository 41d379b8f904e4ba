import Testing
import WebImage

@Suite("Digests and keys", .timeLimit(.minutes(5)))
struct DigestTests {
    // FIPS 180-2 appendix B, and the empty message.
    @Test(
        "SHA-256 gives the published digests",
        arguments: [
            ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
            ),
        ])
    func vectors(text: String, hex: String) {
        #expect(SHA256.hash(Array(text.utf8)).hex == hex)
    }

    @Test("Piece by piece is the same as in one go")
    func incremental() {
        let million = [UInt8](repeating: UInt8(ascii: "a"), count: 1_000_000)
        var hash = SHA256()
        var offset = 0
        for step in sequence(first: 1, next: { $0 * 3 }) {
            let end = min(offset + step, million.count)
            million[offset..<end].withUnsafeBytes { hash.update($0) }
            offset = end
            if end == million.count { break }
        }
        let expected = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
        #expect(hash.finalize().hex == expected)
        #expect(SHA256.hash(million).hex == expected)
    }

    @Test("MD5 gives the published digest")
    func md5() {
        #expect(SHA256.md5Hex(Array("message digest".utf8)) == "f96b697d7cb7938d525a2f31aaf161d0")
    }

    @Test("A digest is read from its hexadecimal digits and from nothing else")
    func hexadecimal() {
        let digest = SHA256.hash(Array("abc".utf8))
        #expect(Digest(hex: digest.hex) == digest)
        #expect(Digest(hex: digest.hex.uppercased()) == digest)
        #expect(Digest(digest.bytes) == digest)
        #expect(Digest(hex: digest.hex.dropLast()) == nil)
        #expect(Digest(hex: digest.hex.dropLast() + "g") == nil)
        #expect(Digest([1, 2, 3]) == nil)
    }

    @Test(
        "A key's path is made of its digest alone",
        arguments: [
            "http://a/b.jpg", "", "../../etc/x", "%2e%2e%2f", "a\0b", String(repeating: "/x", count: 4096),
            ".../con.jpg:stream",
            "x." + String(repeating: "e", count: 300), "ü/\u{1F4A5}\n",
        ])
    func paths(key: String) {
        let name = CacheKey(key)
        let hex = SHA256.hash(Array(key.utf8)).hex
        #expect(name.path == "v1/\(hex.prefix(1))/\(hex.dropFirst(1).prefix(1))/\(hex.dropFirst(2))")
        #expect(name.path.utf8.count == 69)
    }

    @Test("The case of a path matters, and URLs with one MD5 are two keys")
    func distinctKeys() {
        #expect(CacheKey("http://h/A") != CacheKey("http://h/a"))
    }
}
