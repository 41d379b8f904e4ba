import Foundation
import Origin
import TestSupport
import Testing
import WebImage

/// What goes in and comes out, against the readers that others use: jq, Python's csv, lxml, webdataset and pyarrow.
@Suite("Formats, as others read them", .timeLimit(.minutes(5)))
struct ForeignReaderTests: FolderSuite {
    let folder = TemporaryDirectory()
    private let origin: OriginServer
    private var cache: String { folder.path("cache") }

    init() throws {
        origin = try OriginServer()
        for index in 0..<5 {
            origin.route(
                "/\(index).png",
                OriginResponse(body: GeneratedImage.png(seed: UInt64(index), width: 16 + index, height: 9)))
        }
        origin.setFallback { _ in OriginResponse(status: 404) }
    }

    @discardableResult
    private func coord(_ words: [String], exits codes: Set<Int32> = [0]) async throws -> String {
        let child = try await ended(words + ["--cache", cache])
        let end = await child.wait()
        #expect(codes.contains { end == .exited($0) }, "\(words): \(end) \(child.stderr)")
        return child.stdout
    }

    private func run(_ file: String, _ words: [String] = []) async throws {
        try await coord(["run", file, "--allow-net", "127.0.0.0/8", "-n", "1", "-q"] + words, exits: [0, 3])
    }

    @Test(
        "One batch as JSONL, CSV, TSV and archives has the same rows for jq, Python's csv and webdataset", .thorough,
        .needsPyPI)
    func rows() async throws {
        // Columns of every kind: quotes, tabs, line ends, other scripts, and one that is called as ours.
        let file = write(
            "id,image,url,\"a, b\",note\r\n1,\(origin.url("/0.png")),mine,x,\"two\nlines, \"\"quoted\"\"\"\r\n"
                + "2,\(origin.url("/1.png")),,\"tab\there\",שלום 你好\r\n3,\(origin.url("/none.png")),3,,=1+1\r\n"
                + "4,no url,4,,\r\n5,\(origin.url("/2.png")),5,,short\r\n6,\(origin.url("/3.png"))\r\n", "in.csv")
        try await run(file, ["--url-column", "image", "--keep-columns", "id,url,note"])
        let jsonl = folder.path("m.jsonl")
        try await coord(["export", "--format", "jsonl", "-o", jsonl])
        for form in ["csv", "tsv"] { try await coord(["export", "--format", form, "-o", folder.path("m.\(form)")]) }
        try await coord(["export", "--format", "webdataset", "--out", folder.path("shards"), "--per-shard", "3"])
        let filter =
            #"[.line, .url, .outcome, .path, .bytes, .sha256, .format, .width, .height, .level, .http_status, .tries, .ended, .host, .columns.id, .columns.url, .columns.note] | map(if . == null then "" else tostring end) | tojson"#
        let jq = try await ChildProcess("/usr/bin/env", ["jq", "-r", filter, jsonl])
        #expect(await jq.wait() == .exited(0), "\(jq.stderr)")
        #expect(jq.stdout.split(separator: "\n").count == 6 && jq.stdout.contains("שלום 你好"), "\(jq.stdout)")
        let said = try await PythonTools.run(
            """
            import csv, json, sys, webdataset, os
            wanted = [json.loads(line) for line in open(sys.argv[1])]
            folder = sys.argv[2]
            for name, dialect in (("m.csv", "excel"), ("m.tsv", "excel-tab")):
                rows = list(csv.reader(open(folder + "/" + name, newline="", encoding="utf-8"), dialect))
                assert rows[0] == ["line", "url", "outcome", "path", "bytes", "sha256", "format", "width", "height", "level", "orientation", "frames", "alpha", "color_space", "http_status", "tries", "ended", "host", "id", "note", "list_url"], rows[0]
                # Columns are sorted by their name; ours come first.
                rows = [[cell[1:] if cell[:1] == "'" and cell[1:2] in "=+-@" else cell for cell in row] for row in rows]
                found = [row[:10] + row[14:18] + [row[18], row[20], row[19]] for row in rows[1:]]
                assert found == wanted, (name, found, wanted)
            shards = sorted(os.path.join(folder, "shards", name) for name in os.listdir(folder + "/shards") if name.endswith(".tar"))
            by_url = {row[1]: row for row in wanted if row[3]}
            for sample in webdataset.WebDataset(shards, shardshuffle=False):
                facts = json.loads(sample["json"])
                row = by_url.pop(facts["url"])
                assert [facts["sha256"], str(facts["width"]), len(sample["jpg"])] == [row[5], row[7], int(row[4])]
                assert [facts["id"], facts["list_url"], facts["note"]] == row[-3:], (facts, row)
            assert not by_url, by_url
            print(len(wanted), "rows,", len(shards), "archives")
            """, [write(jq.stdout, "rows"), folder.path(".")])
        #expect(said == "6 rows, 2 archives\n")
    }

    @Test("Lists without columns have the manifest they always had, and a name with a comma in it is one column")
    func columnNames() async throws {
        try await run(write(origin.url("/0.png") + "\n", "plain.txt"))
        let plain = try await coord(["export", "--format", "csv"])
        #expect(
            plain.hasPrefix(
                "line,url,outcome,path,bytes,sha256,format,width,height,level,orientation,frames,alpha,color_space,http_status,tries,ended,host\r\n1,\"http://"
            ),
            "\(plain)")
        try await run(
            write(
                "{\"url\":\"\(origin.url("/1.png"))\",\"columns\":{\"a, b\":\"x\"}}\n\(origin.url("/2.png"))\n",
                "own.jsonl"))
        let own = try await coord(["export", "--format", "csv"]).split(separator: "\r\n")
        #expect(
            own.count == 3 && own[0].hasSuffix(",ended,host,\"a, b\"")
                && own[1].hasSuffix(",9,\"decode\",1,1,false,\"rgb\",,,,,\"x\"")
                && own[2].hasSuffix(",9,\"decode\",1,1,false,\"rgb\",,,,,"))
        let tabs = try await coord(["export", "--format", "tsv"]).split(separator: "\n")
        #expect(
            tabs.count == 3 && tabs[1].hasSuffix("\t9\tdecode\t1\t1\tfalse\trgb\t\t\t\t\tx") && !tabs[1].contains("\""))
    }

    @Test("Of sitemaps lxml and our reader have the same addresses", .thorough, .needsPyPI)
    func sitemaps() async throws {
        let image = "http://www.google.com/schemas/sitemap-image/1.1"
        let pages = write(
            """
            <?xml version="1.0" encoding="UTF-8"?>
            <!-- a <loc>comment</loc> -->
            <urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url>
              <loc>
                https://a.example/?a=1&amp;b=&#50;&lt;&#x33;
              </loc><priority>0.5</priority></url>
              <url><loc><![CDATA[https://a.example/c?d=1&e=2]]></loc></url><url><loc>https://例え.example/絵.jpg</loc></url>
            </urlset>
            """, "pages.xml")
        let images = write(
            """
            <s:urlset xmlns:s="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:i='\(image)'>
            <s:url><s:loc>https://a.example/</s:loc><i:image><i:loc>https://a.example/1.jpg</i:loc><i:title>t &amp; u</i:title></i:image>
            <i:image><i:loc>https://a.example/2.jpg?x=&quot;y&quot;</i:loc></i:image></s:url></s:urlset>
            """, "images.xml")
        for file in [pages, images] {
            try await run(
                file, ["--options", "fromCacheOnly", "--name", file.hasSuffix("pages.xml") ? "pages" : "images"])
            let own = try await coord(["export", "--format", "jsonl"])
            let said = try await PythonTools.run(
                """
                import json, sys
                from lxml import etree
                tree = etree.parse(sys.argv[1])
                image = "{\(image)}loc"
                found = [node.text.strip() for node in tree.iter(image)]
                found = found or [node.text.strip() for node in tree.iter("{http://www.sitemaps.org/schemas/sitemap/0.9}loc")]
                ours = [json.loads(line)["url"] for line in open(sys.argv[2], encoding="utf-8")]
                assert found == ours, (found, ours)
                print(len(found))
                """, [file, write(own, "own")])
            #expect(said == (file == pages ? "3\n" : "2\n"))
        }
    }

    @Test("Parquet comes through the pipe that the page names", .thorough, .needsPyPI)
    func parquet() async throws {
        let page = try String(contentsOf: PythonTools.root.appending(path: "docs/FORMATS.md"), encoding: .utf8)
        let start = try #require(page.range(of: "python3 -c 'import sys, csv, pyarrow.parquet as p\n"))
        let end = try #require(page.range(of: "prefetch-coord submit - --input-format csv --keep-columns caption\n"))
        let pipe = String(page[start.lowerBound..<end.lowerBound])
        _ = try await PythonTools.run(
            """
            import sys, pyarrow, pyarrow.parquet
            pyarrow.parquet.write_table(pyarrow.table({"n": [1, 2, 3], "url": sys.argv[2:], "caption": ["a", 'b, "c"', None]}), sys.argv[1])
            """, [folder.path("images.parquet")] + ["/0.png", "/1.png", "/none"].map { origin.url($0) })
        let words = "run - --input-format csv --keep-columns caption --allow-net 127.0.0.0/8 -n 1 -q"
        let shell = try await ChildProcess(
            "/usr/bin/env",
            [
                "bash", "-c",
                "cd '\(folder.path(""))' && \(pipe) '\(builtProduct("prefetch-coord"))' \(words) --cache '\(cache)'",
            ],
            environment: ["PYTHONPATH": try await PythonTools.path()])
        #expect(await shell.wait() == .exited(3), "\(shell.stderr)")
        let rows = try await coord(["export", "--format", "jsonl"]).split(separator: "\n")
        #expect(rows.count == 3 && rows[1].hasSuffix(#","columns":{"caption":"b, \"c\""}}"#), "\(rows)")
        #expect(rows[0].contains(#""outcome":"downloaded""#) && rows[2].contains(#""outcome":"httpError""#))
    }
}
