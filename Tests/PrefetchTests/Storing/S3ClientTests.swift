import Glibc
import PrefetchModel
import TestSupport
import Testing
import Threading
import WebImage

@testable import ObjectStore

/// Requests of libcurl, as a store sees them that checks signatures by itself.
@Suite("Objects in a store", .timeLimit(.minutes(2)))
struct S3ClientTests {
    private let folder = TemporaryDirectory()

    private func made(
        _ store: S3Stub, _ address: String = "s3://images/p", retries: S3Retries = .fast,
        notice: @escaping @Sendable (String) -> Void = { _ in }, change: (inout S3Settings) -> Void = { _ in }
    ) throws(S3Error) -> S3Client {
        let variables = store.environment
        var settings = try S3Settings(
            variable: { variables[$0].flatMap { $0.isEmpty ? nil : $0 } }, file: { _ in nil })
        change(&settings)
        return S3Client(try S3Location(address), settings, retries: retries, notice: notice)
    }

    /// What goes wrong, and what to do.
    private func error(_ body: () throws(S3Error) -> Void) -> S3Error? {
        do throws(S3Error) {
            try body()
            return nil
        } catch {
            return error
        }
    }

    /// A file of zeros, without room on the disk.
    private func file(of size: Int) throws -> (descriptor: Int32, digest: Digest) {
        let path = folder.path("zeros")
        let descriptor = open(path, O_RDWR | O_CREAT | O_TRUNC, 0o600)
        try #require(descriptor >= 0 && ftruncate(descriptor, off_t(size)) == 0)
        var hash = SHA256()
        let block = [UInt8](repeating: 0, count: 1 << 20)
        for start in stride(from: 0, to: size, by: block.count) {
            block.withUnsafeBytes {
                hash.update(UnsafeRawBufferPointer(rebasing: $0[..<min(block.count, size - start)]))
            }
        }
        return (descriptor, hash.finalize())
    }

    @Test("Objects are put, read, listed by pages and deleted, whatever their keys are")
    func whole() async throws {
        let store = try await S3Stub(["--page", "2"])
        for address in ["s3://images", "s3://images/a b/+&=%\u{E9}/e\u{301}~!*'()"] {
            let client = try made(store, address)
            let names = ["0.tar", "1.tar", "2.json", "3", "4 5"]
            for name in names { try client.put(Array(name.utf8), as: name) }
            try client.put([], as: "empty")
            for name in names {
                #expect(try client.get(name) == Array(name.utf8))
                let object = try #require(try client.head(name))
                #expect(object.size == name.utf8.count && object.sha256 == SHA256.hash(Array(name.utf8)).hex)
                #expect(object.etag == SHA256.md5Hex(Array(name.utf8)))
            }
            #expect(try client.get("none") == nil && client.head("none") == nil)
            try await store.put(
                "x",
                as: client.location.key(of: "deeper/x").utf8.reduce(into: "") { text, byte in
                    text += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
                })
            let listed = try client.list()
            #expect(listed.map(\.name.text).sorted() == (names + ["empty"]).sorted())
            #expect(listed.allSatisfy { $0.object.size == ($0.name == "empty" ? 0 : $0.name.text.utf8.count) })
            for name in names { try client.delete(name) }
            try client.delete("none")
            #expect(try client.list().map(\.name) == ["empty"])
        }
    }

    @Test("What is long is put in equal parts; where it fails no part is left, and an answer that is lost is asked for")
    func parts() async throws {
        let store = try await S3Stub()
        let size = 2 * S3Client.partSize + 1
        let (descriptor, digest) = try file(of: size)
        defer { close(descriptor) }
        let client = try made(store)
        for fault in [
            nil, "method=PUT&query=uploadId&action=reset&count=2", "method=POST&query=uploadId&action=drop&count=1",
            "method=POST&query=uploadId&action=late-error&count=1", "method=PUT&query=uploadId&action=flip&count=1",
        ] {
            if let fault { try await store.fail(fault) }
            try client.put(descriptor, size: size, digest: digest, as: "long.tar")
            #expect(
                try client.head("long.tar")?.size == size && client.head("long.tar")?.sha256 == digest.hex,
                "\(fault ?? "")")
            #expect(try await store.uploads() == 0)
            try client.delete("long.tar")
        }
        try await store.fail("method=PUT&query=uploadId&action=403&count=1")
        let refused = error { () throws(S3Error) in
            try client.put(descriptor, size: size, digest: digest, as: "long.tar")
        }
        #expect(
            refused?.kind == .refused && refused?.message.contains("AccessDenied (403)") == true, "\(refused as Any)")
        #expect(try await store.uploads() == 0)
        #expect(try client.head("long.tar") == nil)
    }

    @Test("A store that fails is asked again; one that goes on so is given up, and so is one that refuses, at once")
    func retries() async throws {
        let store = try await S3Stub()
        let notices = Locked<[String]>([])
        let client = try made(store, notice: { text in notices.withLock { $0.append(text) } })
        for action in ["503", "500", "reset", "half", "flip", "drop"] {
            try await store.fail("method=PUT&action=\(action)&count=2")
            try client.put(Array("content".utf8), as: "a")
            #expect(try client.get("a") == Array("content".utf8), "\(action)")
            #expect(notices.withLock { $0.count } == 2, "\(action)")
            notices.withLock { $0 = [] }
        }
        try await store.fail("method=PUT&action=503&count=4")
        let gone = error { () throws(S3Error) in try client.put([1], as: "b") }
        #expect(gone?.kind == .unavailable)
        #expect(gone?.message == "writing s3://images/p/b failed 4 times: SlowDown (503)")
        #expect(notices.withLock { $0 }.last == "writing s3://images/p/b: SlowDown (503); trying again")
        try await store.fail("method=PUT&action=403&count=1")
        let before = try await store.log().count
        #expect(error { () throws(S3Error) in try client.put([1], as: "c") }?.kind == .refused)
        #expect(try await store.log().count == before + 1)
        #expect(try client.head("b") == nil && client.head("c") == nil)
    }

    @Test("Keys, regions and buckets that are wrong are named, with what to do")
    func refused() async throws {
        let store = try await S3Stub()
        func said(_ address: String = "s3://images/p", _ change: (inout S3Settings) -> Void) throws -> (String, String)
        {
            let client = try made(store, address, change: change)
            let error = try #require(error { () throws(S3Error) in try client.checkAccess("a") })
            return (error.message, error.hint)
        }
        try made(store).checkAccess("a")
        #expect(try await store.uploads() == 0)
        #expect(try await store.keys().isEmpty)
        var (message, hint) = try said { $0.secretKey = "other" }
        #expect(message.contains("SignatureDoesNotMatch (403)") && hint.contains("are not keys of this store"))
        (message, hint) = try said { $0.accessKey = "other" }
        #expect(message.contains("InvalidAccessKeyId (403)") && hint.contains("are not keys of this store"))
        (message, hint) = try said { $0.region = "eu-west-1" }
        #expect(message.contains("AuthorizationHeaderMalformed (400)") && hint.contains("AWS_REGION=us-east-1"))
        (message, hint) = try said("s3://other/p") { _ in }
        #expect(
            message == "there is no bucket other at \(store.url)/other" && hint == "create it: aws s3 mb s3://other")
        try await store.fail("method=POST&action=403&count=1")
        (message, hint) = try said { _ in }
        #expect(message.contains("AccessDenied (403)") && hint.contains("s3:PutObject"))
        (message, _) = try said { $0.endpoint = "http://127.0.0.1:1" }
        #expect(message.hasPrefix("reading s3://images/p failed 4 times: "), "\(message)")
        let lent = try await S3Stub(["--token", "lent+/="])
        try made(lent, change: { $0.sessionToken = "lent+/=" }).checkAccess("a")
        let client = try made(lent)
        #expect(error { () throws(S3Error) in try client.checkAccess("a") }?.kind == .refused)
    }

    @Test("What is put as new takes no object's place, if the store knows that")
    func conditions() async throws {
        let (descriptor, digest) = try file(of: 3)
        defer { close(descriptor) }
        let store = try await S3Stub()
        let client = try made(store)
        try client.put([1], as: "a")
        let taken = error { () throws(S3Error) in
            _ = try client.put(descriptor, size: 3, digest: digest, as: "a", isNew: true)
        }
        #expect(taken?.kind == .taken, "\(taken as Any)")
        #expect(try client.get("a") == [1])
        // The answer is lost: whose it is, a comparison says.
        try await store.fail("method=PUT&action=drop")
        let lost = error { () throws(S3Error) in
            _ = try client.put(descriptor, size: 3, digest: digest, as: "b", isNew: true)
        }
        #expect(lost?.kind == .taken)
        #expect(try client.object("b", of: descriptor, size: 3, digest: digest) != nil)
        #expect(try client.object("a", of: descriptor, size: 3, digest: digest) == nil)
        // It has stored other bytes under the digest that it was told: they are replaced.
        try await store.fail("method=PUT&action=flip")
        try client.put(descriptor, size: 3, digest: digest, as: "c", isNew: true)
        #expect(try client.get("c") == [0, 0, 0])
        let simple = try await S3Stub(["--unconditional"])
        let other = try made(simple)
        for name in ["a", "b"] { try other.put(descriptor, size: 3, digest: digest, as: name, isNew: true) }
        #expect(try await simple.log().map { $0.split(separator: " ").last } == ["501", "200", "200"])
    }

    @Test("A client that is cancelled ends what hangs, and begins nothing")
    func cancelled() async throws {
        let store = try await S3Stub()
        let pool = ThreadPool(threads: 1, name: "put")
        for action in ["hang", "503"] {
            let stuck = try made(
                store, retries: S3Retries(count: 3, firstPause: .seconds(60), grace: .milliseconds(100)))
            try await store.fail("method=PUT&action=\(action)&count=1")
            let before = try await store.log().count
            let put = Task { try await pool.run { () throws(S3Error) in try stuck.put([1], as: "a") } }
            try await until {
                if try await store.isWaiting() { return true }
                return try await store.log().count > before
            }
            stuck.cancel()
            let end = await put.result
            #expect(throws: S3Error.self) { try end.get() }
            #expect(error { () throws(S3Error) in try stuck.put([1], as: "b") }?.kind == .cancelled)
        }
        #expect(try await store.keys().isEmpty)
    }
}

extension S3Retries {
    fileprivate static let fast = S3Retries(count: 3, firstPause: .milliseconds(1))
}

extension S3Client {
    /// Puts bytes, by a file of them.
    fileprivate func put(_ bytes: [UInt8], as name: String) throws(S3Error) {
        let folder = TemporaryDirectory()
        folder.write(bytes, to: "file")
        let descriptor = open(folder.path("file"), O_RDONLY)
        defer { close(descriptor) }
        _ = try put(descriptor, size: bytes.count, digest: SHA256.hash(bytes), as: name)
    }
}
