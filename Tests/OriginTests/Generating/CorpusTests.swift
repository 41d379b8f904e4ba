import Glibc
import Origin
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct CorpusTests {
    private let folder = TemporaryDirectory()

    private func generate(_ name: String, _ options: String...) async throws -> ChildProcess {
        let child = try await ChildProcess(
            builtProduct("prefetch-origin"), ["generate", folder.path(name)] + options)
        await child.wait()
        return child
    }

    private func manifest(_ name: String) throws -> [[Substring]] {
        let text = String(decoding: try #require(folder.read("\(name)/manifest.tsv")), as: UTF8.self)
        return text.split(separator: "\n").map { $0.split(separator: "\t") }
    }

    @Test
    func `the kinds have the shares that are promised, exactly`() {
        let corpus = Corpus(count: 400)
        var kinds: [GeneratedImage.Kind: Int] = [:]
        for index in 0..<corpus.count { kinds[corpus.image(index).kind, default: 0] += 1 }
        #expect(kinds == [.jpeg: 280, .progressiveJPEG: 40, .png: 60, .gif: 10, .webp: 10])
    }

    @Test
    func `planned sizes are log-normal around the median`() {
        let corpus = Corpus(count: 20_000)
        let sizes = (0..<corpus.count).map { corpus.image($0).approximateBytes }.sorted()
        #expect((26_000...28_000).contains(sizes[10_000]), "\(sizes[10_000])")
        #expect((175_000...195_000).contains(sizes[19_000]), "\(sizes[19_000])")
        let mean = sizes.reduce(0, +) / sizes.count
        #expect((48_000...58_000).contains(mean), "\(mean)")
    }

    @Test
    func `a small corpus is the beginning of a large one, another seed is another corpus`() {
        let small = Corpus(count: 40), large = Corpus(count: 4000), other = Corpus(count: 40, seed: 2)
        #expect((0..<40).allSatisfy { small.image($0) == large.image($0) })
        #expect((0..<40).allSatisfy { small.image($0).seed != other.image($0).seed })
        #expect(Set((0..<4000).map { large.image($0).seed }).count == 4000)
        #expect(Set((0..<4000).map { large.image($0).path }).count == 4000)
    }

    @Test
    func `generate writes what its manifest says, and the same again`() async throws {
        let first = try await generate("first", "--count", "120", "--median", "2000")
        #expect(await first.wait() == .exited(0), "\(first.stderr)")
        let rows = try manifest("first")
        #expect(rows.count == 120)
        #expect(first.stdout.hasPrefix("120 images, "))
        #expect(first.stdout.contains("seed 1: median "))
        #expect(rows.prefix(6).map { $0[1] } == ["jpeg", "jpeg", "jpeg", "progressiveJPEG", "jpeg", "png"])
        for row in rows {
            let bytes = try #require(folder.read("first/\(row[0])"))
            #expect(bytes.count == Int(row[2]))
        }
        // Coreutils' word on every digest.
        folder.write(Array(rows.map { "\($0[3])  \(folder.path("first"))/\($0[0])\n" }.joined().utf8), to: "sums")
        let check = try await ChildProcess(
            "/usr/bin/sha256sum", ["--check", "--strict", "--quiet", folder.path("sums")])
        #expect(await check.wait() == .exited(0), "\(check.stdout) \(check.stderr)")

        #expect(await (try await generate("second", "--count", "120", "--median", "2000")).wait() == .exited(0))
        #expect(folder.read("second/manifest.tsv") == folder.read("first/manifest.tsv"))
        #expect(await (try await generate("third", "--count", "20", "--seed", "2")).wait() == .exited(0))
        #expect(try manifest("third").map { $0[3] } != rows.prefix(20).map { $0[3] })
    }

    @Test
    func `a folder with something in it is left alone`() async throws {
        folder.write([1], to: "mine")
        let child = try await ChildProcess(builtProduct("prefetch-origin"), ["generate", folder.path, "--count", "1"])
        #expect(await child.wait() == .exited(74))
        #expect(child.stderr.contains("Directory not empty"))
        #expect(child.stdout.isEmpty)
        #expect(folder.contents() == ["mine"])
    }

    @Test
    func `serve answers with the files until it is told to end`() async throws {
        #expect(await (try await generate("corpus", "--count", "3", "--median", "2000")).wait() == .exited(0))
        let server = try await ChildProcess(builtProduct("prefetch-origin"), ["serve", folder.path("corpus")])
        try await until { server.stdout.hasSuffix("/\n") || !server.isRunning }
        let port = try #require(server.stdout.dropLast(2).split(separator: ":").last.flatMap { Int($0) })
        let client = try RawClient(port: port)
        client.send("GET /000/000001.jpg?v=7 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        let image = try #require(folder.read("corpus/000/000001.jpg"))
        let answer = client.readAll()
        #expect(answer.hasPrefix("HTTP/1.1 200 OK\r\nContent-Type: image/jpeg\r\n"))
        #expect(answer.contains("\r\nContent-Length: \(image.count)\r\n"))
        server.signal(SIGTERM)
        #expect(await server.wait() == .exited(0), "\(server.stderr)")
    }

    @Test
    func `serve says who asked for what, and a fault that comes and goes does both`() async throws {
        let server = try await ChildProcess(
            builtProduct("prefetch-origin"), ["serve", folder.path, "--faults", "--log"])
        try await until { server.stdout.hasSuffix("/\n") || !server.isRunning }
        let port = try #require(server.stdout.dropLast(2).split(separator: ":").last.flatMap { Int($0) })
        let client = try RawClient(port: port)
        client.send("GET /fault/flap/1 HTTP/1.1\r\n\r\nGET /fault/flap/1 HTTP/1.1\r\nUser-Agent: w-7\r\n")
        client.send("Connection: close\r\n\r\n")
        let answer = client.readAll()
        #expect(answer.hasPrefix("HTTP/1.1 503 ") && answer.contains("HTTP/1.1 200 OK\r\nContent-Type: image/jpeg\r\n"))
        server.signal(SIGTERM)
        #expect(await server.wait() == .exited(0), "\(server.stderr)")
        #expect(server.stdout.hasSuffix("/\n/fault/flap/1 -\n/fault/flap/1 w-7\n"), "\(server.stdout)")
    }
}
