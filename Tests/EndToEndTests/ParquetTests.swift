import Foundation
import Glibc
import Origin
import TestSupport
import Testing

/// Lists of rows in Parquet: with a stand-in for DuckDB, and with those of PyPI.
@Suite("Lists in Parquet", .timeLimit(.minutes(5)))
struct ParquetTests: FolderSuite {
    let folder = TemporaryDirectory()

    /// A program that answers as DuckDB does, with a file of the right magic for it.
    private func standIn(_ answer: String, _ name: String = "t.parquet") -> [String: String] {
        let script = """
            #!/bin/bash
            printf '%s\\n' "$*" >>'\(folder.path("asked"))'
            [ "$(head -c 4 /proc/self/fd/0)" = PAR1 ] || exit 9
            case "$*" in
            *describe*)
                echo '{"column_name":"id","column_type":"BIGINT"}'
                echo '{"column_name":"URL","column_type":"VARCHAR"}'
                echo '{"column_name":"TEXT","column_type":"VARCHAR"}'
                echo '{"column_name":"tags","column_type":"VARCHAR[]"}'
                echo '{"rows":3}' ;;
            *) \(answer) ;;
            esac
            """
        folder.write(Array(script.utf8), to: "duckdb")
        chmod(folder.path("duckdb"), 0o700)
        folder.write(Array("PAR1 and so on PAR1".utf8), to: name)
        return ["PREFETCH_DUCKDB": folder.path("duckdb")]
    }

    private func coord(
        _ words: [String], _ environment: [String: String], exits code: Int32
    ) async throws -> ChildProcess {
        let child = try await ChildProcess(builtProduct("prefetch-coord"), words, environment: environment)
        #expect(await child.wait() == .exited(code), "\(words): \(child.stderr)")
        return child
    }

    private func row(_ number: Int) -> String {
        #"{"url":"http://192.0.2.1/\#(number).png","columns":{"TEXT":"of \#(number)"}}"#
    }

    private let fetchNothing = ["--options", "fromCacheOnly", "--allow-failures", "3", "-n", "1"]

    @Test("Its columns are found as those of a table, its rows are lines, and captions are kept by themselves")
    func rows() async throws {
        let environment = standIn("printf '%s\\n' '\(row(1))' '\(row(2))' '{\"url\":\"\",\"columns\":{\"TEXT\":\"\"}}'")
        let cache = folder.path("cache")
        let run = try await coord(
            ["run", folder.path("t.parquet"), "--where", "id > 3", "--keep-columns", "id,tags", "--cache", cache]
                + fetchNothing,
            environment, exits: 0)
        #expect(run.stderr.contains("note: the column 'TEXT' is kept, for captions"), "\(run.stderr)")
        #expect(
            run.stdout.contains("finished 3 of 3: 0 images, 3 skipped (notCached 2, invalidURL 1)"), "\(run.stdout)")
        let asked = String(decoding: try #require(folder.read("asked")), as: UTF8.self)
        #expect(
            asked.contains(
                #"select coalesce(cast("URL" as varchar), '') as url, struct_pack("id" := "id", "tags" := to_json("tags"), "#
                    + #""TEXT" := cast("TEXT" as varchar)) as columns "#
                    + "from read_parquet('/proc/self/fd/0') where (\nid > 3\n)) to '/proc/self/fd/1'"), "\(asked)")
        let lines = try await coord(["export", "--format", "jsonl", "--cache", cache], [:], exits: 0).stdout
            .split(separator: "\n")
        try #require(lines.count == 3, "\(lines)")
        #expect(lines[1].contains(#""line":2,"url":"http://192.0.2.1/2.png""#), "\(lines)")
        #expect(lines[1].hasSuffix(#""columns":{"TEXT":"of 2"}}"#), "\(lines)")
    }

    @Test("What it cannot say, or dies of, is told in its words, and what came before is kept")
    func failures() async throws {
        let list = folder.path("t.parquet")
        let cache = ["--cache", folder.path("cache")]
        var environment = standIn("echo 'Invalid Input Error: a page is cut' >&2; exit 1")
        let cut = try await coord(["run", list] + cache + fetchNothing, environment, exits: 65)
        #expect(cut.stderr.contains("cannot read \(list): Invalid Input Error: a page is cut\n"), "\(cut.stderr)")
        #expect(access(folder.path("cache"), F_OK) != 0)
        environment = standIn("kill -9 $$")
        let killed = try await coord(["run", list] + cache + fetchNothing, environment, exits: 65)
        #expect(killed.stderr.contains("the program was killed by signal 9"), "\(killed.stderr)")
        environment = standIn("true")
        let column = try await coord(["run", list, "--url-column", "img"] + cache, environment, exits: 65)
        #expect(column.stderr.contains("there is no column 'img'"), "\(column.stderr)")
        #expect(column.stderr.contains("hint: its columns are id, URL, TEXT, tags"), "\(column.stderr)")
        let none = try await coord(
            ["run", list] + cache, ["PATH": folder.path("none"), "PREFETCH_DUCKDB": ""], exits: 65)
        #expect(none.stderr.contains("hint: pip install duckdb-cli, or pip install pyarrow"), "\(none.stderr)")
        folder.write(Array("http://192.0.2.1/a.png\n".utf8), to: "urls.txt")
        let text = try await coord(["run", folder.path("urls.txt"), "--where", "x"] + cache, [:], exits: 78)
        #expect(text.stderr.contains("is no Parquet file, and --where is about the rows of one"), "\(text.stderr)")
        // A program that fails behind the first MiB: what it wrote is queued, and the batch waits for the rest.
        let redis = try await RedisServer()
        environment = standIn("for i in $(seq 20000); do echo '\(row(7))'; done; echo 'the disk is broken' >&2; exit 3")
        let late = try await coord(["submit", list, "--name", "p", "--redis", redis.url], environment, exits: 65)
        #expect(late.stderr.contains("the disk is broken"), "\(late.stderr)")
        let status = try await coord(["status", "p", "--json", "--redis", redis.url], [:], exits: 0).stdout
        #expect(status.contains(#""pushed":20000,"sealed":false"#), "\(status)")
    }

    @Test("DuckDB needs no more memory for more rows", .thorough, .needsPyPI)
    func memory() async throws {
        let path = try await PythonTools.path()
        _ = try await PythonTools.run(
            """
            import sys, pyarrow, pyarrow.parquet
            n = 250000
            pyarrow.parquet.write_table(pyarrow.table({
                "url": [f"http://192.0.2.1/{i}.png" for i in range(n)],
                "caption": [f"a picture of thing {i} in a street with trees and people and some more words" for i in range(n)]
            }), sys.argv[1])
            """, [folder.path("t.parquet")])
        // A tenth of what it may have: all rows at once take more.
        let script = "#!/bin/bash\nexec '\(path)/bin/duckdb' \"${@//1GB/100MB}\"\n"
        folder.write(Array(script.utf8), to: "duckdb")
        chmod(folder.path("duckdb"), 0o700)
        let environment = [
            "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "PREFETCH_DUCKDB": folder.path("duckdb"),
        ]
        let run = try await coord(
            ["run", folder.path("t.parquet"), "--dry-run", "--json", "--cache", folder.path("cache")], environment,
            exits: 0)
        #expect(run.stdout.contains(#""lines":250000,"urls":250000"#), "\(run.stdout)")
    }

    @Test("DuckDB and pyarrow read the same rows out of it", .thorough, .needsPyPI, arguments: ["duckdb", "python3"])
    func programs(name: String) async throws {
        let path = try await PythonTools.path()
        _ = try await PythonTools.run(
            """
            import sys, pyarrow, pyarrow.parquet
            n = 30000
            pyarrow.parquet.write_table(pyarrow.table({
                "n": list(range(n)), "url": [f"http://192.0.2.1/{i}.png" if i else None for i in range(n)],
                "alt": [f'a "caption", {i}\\nof é' if i % 3 else None for i in range(n)],
                "tags": [["a", "b"] if i % 2 else None for i in range(n)]}), sys.argv[1], row_group_size=4000)
            """, [folder.path("t'*.parquet")])
        let environment = [
            "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1",
            "PREFETCH_DUCKDB": name == "duckdb" ? "\(path)/bin/duckdb" : "", "PATH": "/usr/bin:/bin",
        ]
        let cache = ["--cache", folder.path("cache")]
        let list = folder.path("t'*.parquet")
        let words = ["run", list, "--keep-columns", "n,tags", "--options", "fromCacheOnly", "--allow-failures", "100%"]
        _ = try await coord(words + cache, environment, exits: 0)
        let lines = try await coord(["export", "--format", "jsonl"] + cache, [:], exits: 0).stdout.split(
            separator: "\n")
        try #require(lines.count == 30_000)
        #expect(lines[0].contains(#""outcome":"invalidURL""#), "\(lines.first ?? "")")
        #expect(
            lines[29_999].contains(
                #""columns":{"alt":"a \"caption\", 29999\nof é","n":29999,"tags":["a","#), "\(lines.last ?? "")")
        #expect(lines[7].contains(#""columns":{"alt":"a \"caption\", 7\nof é","n":7,"#), "\(lines[7])")
        guard name == "duckdb" else { return }
        let some = try await coord(
            ["run", list, "--where", "n >= 29990 AND alt IS NOT NULL", "--dry-run", "--json"] + cache, environment,
            exits: 0)
        #expect(some.stdout.contains(#""lines":7,"urls":7"#), "\(some.stdout)")
        let wrong = try await coord(["run", list, "--where", "m > 1"] + cache, environment, exits: 65)
        #expect(wrong.stderr.contains("Binder Error"), "\(wrong.stderr)")
        let bytes = try #require(folder.read("t'*.parquet"))
        folder.write(Array(bytes.dropLast(100)), to: "cut.parquet")
        let cut = try await coord(["run", folder.path("cut.parquet")] + cache, environment, exits: 65)
        #expect(cut.stderr.contains("No magic bytes found at end of file"), "\(cut.stderr)")
    }
}
