import Foundation
import Origin
import TestSupport
import Testing

/// Lists that are no lines, and what comes out of a batch, with the built programs.
@Suite("Inputs and pages", .timeLimit(.minutes(5)))
struct InputTests: FolderSuite {
    let folder = TemporaryDirectory()
    private let origin: OriginServer
    private let net = ["--allow-net", "127.0.0.0/8", "-n", "1", "-q"]

    init() throws {
        origin = try OriginServer()
        for index in 0..<4 {
            origin.route(
                "/\(index).png", OriginResponse(body: GeneratedImage.png(seed: UInt64(index), width: 16, height: 16)))
        }
        origin.setFallback { _ in OriginResponse(status: 404) }
    }

    private func coord(_ words: [String], input: String? = nil) async throws -> ChildProcess {
        let child = try await ChildProcess(
            builtProduct("prefetch-coord"), words, input: input.map { Array($0.utf8) })
        await child.wait()
        return child
    }

    @Test("A table keeps its columns up to the manifest, under its own line numbers, and a second run goes on with it")
    func table() async throws {
        let file = write(
            "id,image,caption\n7,\(origin.url("/0.png")),\"a, \"\"b\"\"\"\n8,\(origin.url("/1.png")),\n9,\(origin.url("/none")),gone\n",
            "my list.csv")
        let cache = folder.path("cache")
        let words = ["run", file, "--cache", cache, "--keep-columns", "id,caption"] + net
        let run = try await coord(words)
        #expect(await run.wait() == .exited(3), "\(run.stderr)")
        let export = try await coord(["export", "--format", "jsonl", "--cache", cache])
        let rows = export.stdout.split(separator: "\n").map(String.init)
        #expect(rows.count == 3)
        #expect(rows[0].hasPrefix(#"{"line":2,"url":"\#(origin.url("/0.png"))","outcome":"downloaded""#), "\(rows)")
        #expect(rows[0].hasSuffix(#","columns":{"caption":"a, \"b\"","id":"7"}}"#), "\(rows)")
        #expect(rows[2].contains(#""line":4,"#) && rows[2].contains(#""outcome":"httpError""#))
        let failures = try await coord(["failures", "--cache", cache])
        #expect(failures.stdout.hasPrefix("4: \(origin.url("/none"))"))
        let lists = TemporaryDirectory.contents(TemporaryDirectory.runState(of: cache) + "/lists")
        #expect(lists.map { String($0.dropFirst(64)) } == [".list.txt", ".list.zst"], "\(lists)")
        // The same input is the same list.
        #expect(await (try await coord(words)).wait() == .exited(3))
        #expect(TemporaryDirectory.contents(TemporaryDirectory.runState(of: cache) + "/lists") == lists)
        let wrong = try await coord(["run", file, "--cache", cache, "--url-column", "picture"] + net)
        #expect(await wrong.wait() == .exited(65))
        #expect(wrong.stderr.contains("hint: the first row has id, image, caption"), "\(wrong.stderr)")
    }

    @Test(
        "Members of JSON lines that nothing uses are named once, kept where that is asked, and refused where they must not be"
    )
    func members() async throws {
        let lines = [
            #"{"url":"\#(origin.url("/0.png"))","id":7,"caption":"a, \"b\"","tags":["x",1.5],"columns":{"own":"o"}}"#,
            origin.url("/1.png"), #"{"id":null,"url":"\#(origin.url("/none"))"}"#,
        ]
        let file = write(lines.map { $0 + "\n" }.joined(), "list.jsonl")
        let cache = folder.path("cache")
        let run = try await coord(["run", file, "--cache", cache] + net)
        #expect(await run.wait() == .exited(3), "\(run.stderr)")
        let warning =
            "warning: members that nothing uses: caption (1 line), id (2 lines), tags (1 line); --keep-columns NAME,… keeps them for export\n"
        #expect(run.stderr.components(separatedBy: warning).count == 2, "\(run.stderr)")
        let kept = try await coord(["run", file, "--cache", cache, "--keep-columns", "id,caption"] + net)
        #expect(await kept.wait() == .exited(3), "\(kept.stderr)")
        #expect(!kept.stderr.contains("nothing uses"), "\(kept.stderr)")
        let export = try await coord(["export", "--format", "jsonl", "--cache", cache])
        let rows = export.stdout.split(separator: "\n").map(String.init)
        #expect(rows.count == 3)
        #expect(rows.first?.hasSuffix(#","columns":{"caption":"a, \"b\"","id":7,"own":"o"}}"#) == true, "\(rows)")
        #expect(rows.last?.contains(#""line":3,"#) == true && rows.last?.hasSuffix(#","columns":{"id":null}}"#) == true)
        let table = try await coord(["export", "--format", "tsv", "--cache", cache])
        #expect(table.stdout.split(separator: "\n")[0].hasSuffix("\tcaption\tid\town"), "\(table.stdout)")
        // Through a pipe it is the same.
        let pipe = try await shell(
            "'\(builtProduct("prefetch-coord"))' run <(gzip -c '\(file)') --cache '\(cache)' --keep-columns id,caption,tags "
                + "--allow-net 127.0.0.0/8 -n 1 -q")
        #expect(await pipe.wait() == .exited(3), "\(pipe.stderr)")
        #expect(!pipe.stderr.contains("nothing uses"), "\(pipe.stderr)")
        let csv = write("id,url,sha265\n1,\(origin.url("/0.png")),x\n", "table.csv")
        let bad = try await coord(["run", file, "--keep-columns", "none", "--cache", cache])
        #expect(await bad.wait() == .exited(65), "\(bad.stderr)")
        #expect(bad.stderr.hasPrefix("error: no line has the member 'none'"), "\(bad.stderr)")
        let digest = try await coord(["run", csv, "--cache", cache] + net)
        #expect(await digest.wait() == .exited(0))
        #expect(digest.stderr.contains("warning: nothing is checked against the column sha265"), "\(digest.stderr)")
    }

    @Test("Packed lists, sitemaps and tables come through standard input too, and half a file queues nothing")
    func packed() async throws {
        let cache = folder.path("cache")
        let map = write(
            "<?xml version=\"1.0\"?><urlset><url><loc>\(origin.url("/"))</loc><image:image><image:loc>\(origin.url("/2.png"))</image:loc></image:image></url></urlset>",
            "sitemap.xml")
        let program = builtProduct("prefetch-coord")
        for (command, count) in [
            ("gzip -c '\(map)' | '\(program)' run - --cache '\(cache)'", 1),
            ("'\(program)' run '\(map)' --cache '\(cache)'", 1),
            (
                "printf '\(origin.url("/0.png"))\\n\(origin.url("/1.png"))\\n' | gzip | '\(program)' run - --cache '\(cache)'",
                2
            ),
            (
                "printf 'x\\tu\\n1\\t\(origin.url("/3.png"))\\n' | '\(program)' run - --cache '\(cache)' --url-column u",
                1
            ),
        ] {
            let run = try await shell("\(command) --allow-net 127.0.0.0/8 -n 1 -q")
            #expect(await run.wait() == .exited(0), "\(command): \(run.stderr)")
            #expect(
                run.stdout.contains("finished \(count) of \(count): \(count) image\(count == 1 ? "" : "s"), 0 skipped"),
                "\(command): \(run.stdout)")
        }
        let half = try await shell(
            "seq 9999 | sed 's|^|https://a.example/|' | gzip | head -c 9000 | '\(program)' run - --cache '\(cache)' -q")
        #expect(await half.wait() == .exited(65))
        #expect(half.stderr.contains("cannot read"), "\(half.stderr)")
        let index = try await shell(
            "printf '<sitemapindex><sitemap><loc>https://a/sitemap.xml</loc></sitemap></sitemapindex>' | "
                + "TMPDIR='\(folder.path(""))' '\(program)' run - -q --cache '\(cache)'; echo $?; "
                + "find '\(folder.path(""))' -name 'stdin-*.txt'")
        await index.wait()
        #expect(
            index.stdout == "65\n" && index.stderr.contains("there is nothing beside standard input"), "\(index.stdout)"
        )
    }

    @Test("report writes a page of a real batch, and refuses a terminal and a folder")
    func report() async throws {
        let cache = folder.path("cache")
        let list = write((0..<5).map { origin.url("/\($0).png?<b>&\"'") + "\n" }.joined(), "urls.txt")
        // As they are asked for, which is not as they are written.
        origin.setFallback { request in
            request.path.hasPrefix("/4")
                ? OriginResponse(status: 404)
                : OriginResponse(
                    body: GeneratedImage.png(
                        seed: UInt64(request.path.utf8.dropFirst().first ?? 0), width: 16, height: 16))
        }
        let run = try await coord(["run", list, "--cache", cache] + net)
        #expect([.exited(0), .exited(3)].contains(await run.wait()), "\(run.stderr)")
        let file = folder.path("r.html")
        let report = try await coord(["export", "--format", "html", "--cache", cache, "--output", file])
        #expect(await report.wait() == .exited(0), "\(report.stderr)")
        #expect(report.stdout.isEmpty && report.stderr.hasPrefix("\(file): "))
        let page = String(decoding: try #require(folder.read("r.html")), as: UTF8.self)
        #expect(page.contains("<h2>How they ended</h2>") && page.contains("<h2>How long transfers took</h2>"))
        #expect(page.contains("?&lt;b&gt;&amp;&quot;&#39;") && !page.contains("?<b>"))
        let piped = try await coord(["export", "--format", "html", "--cache", cache])
        #expect(piped.stdout.hasPrefix("<!DOCTYPE html>") && piped.stderr.isEmpty, "\(piped.stderr)")
        for (words, code) in [
            (["--output", folder.path("none/r.html")], 73), (["--output", cache], 73), (["nothing"], 66),
            (["--output", ""], 64),
        ] as [([String], Int32)] {
            let bad = try await coord(["export", "--format", "html", "--cache", cache] + words)
            #expect(await bad.wait() == .exited(code), "\(words): \(bad.stderr)")
        }
        let terminal = try await shell(
            "script -qec \"'\(builtProduct("prefetch-coord"))' export --format html --cache '\(cache)'\" /dev/null </dev/null; echo $?"
        )
        #expect(terminal.stdout.contains("name a file: -o report.html") && terminal.stdout.hasSuffix("78\n"))
    }

    @Test(
        "An address in a bucket is no list: what fetches it is named",
        arguments: [
            ("s3://bucket/list.txt", "aws s3 cp 's3://bucket/list.txt' ."),
            ("gs://bucket/list.parquet", "gcloud storage cp 'gs://bucket/list.parquet' ."),
        ])
    func address(_ address: String, command: String) async throws {
        let run = try await ended(["run", address, "--cache", folder.path("cache")])
        #expect(await run.wait() == .exited(66) && run.stderr.contains("is an address"), "\(run.stderr)")
        #expect(run.stderr.contains("fetch it first: \(command)"), "\(run.stderr)")
    }
}
