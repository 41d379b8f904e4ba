import Foundation
import Origin
import TestSupport
import Testing

/// Shards, against what img2dataset makes of the same lists and what training jobs read them with.
@Suite("Shards, as others write and read them", .timeLimit(.minutes(10)))
struct ShardReaderTests: FolderSuite {
    let folder = TemporaryDirectory()
    private let origin: OriginServer
    private var cache: String { folder.path("cache") }

    init() throws {
        origin = try OriginServer()
        for index in 0..<60 {
            let seed = UInt64(index)
            let body =
                switch index % 6 {
                case 3: GeneratedImage.png(seed: seed, width: 40 + index, height: 30)
                case 4: GeneratedImage.gif(seed: seed, width: 20 + index, height: 30)
                case 5: GeneratedImage.webp(seed: seed, width: 10 + index, height: 30)
                default: GeneratedImage.jpeg(seed: seed, width: 50 + index, height: 70)
                }
            origin.route("/\(index)", OriginResponse(body: body))
        }
        origin.setFallback { _ in OriginResponse(status: 404) }
    }

    private func peer(_ program: String, _ arguments: [String]) async throws -> String {
        let child = try await ChildProcess(
            "/usr/bin/env", ["python3", "-c", program] + arguments,
            environment: [
                "PYTHONPATH": try #require(try await PythonTools.folder("peers")),
                "PYTHONDONTWRITEBYTECODE": "1", "HF_HOME": folder.path("hub"), "HF_HUB_OFFLINE": "1",
                "NO_ALBUMENTATIONS_UPDATE": "1",
            ])
        #expect(await child.wait() == .exited(0), "\(child.stderr)")
        return child.stdout
    }

    private func run(_ lists: [String], _ words: [String]) async throws {
        let child = try await ChildProcess(
            builtProduct("prefetch-coord"),
            ["run"] + lists + words + ["--cache", cache, "--allow-net", "127.0.0.0/8", "-n", "1", "-q"],
            environment: [
                "PREFETCH_DUCKDB": try await PythonTools.path() + "/bin/duckdb",
                "PYTHONPATH": try await PythonTools.path(),
                "PYTHONDONTWRITEBYTECODE": "1",
            ])
        let end = await child.wait()
        #expect(end == .exited(3) || end == .exited(0), "\(child.stderr)")
    }

    @Test("datasets and webdataset load every image of a mixed list", .thorough, .needsPeers)
    func mixed() async throws {
        let rows = (0..<60).map { #"{"url":"\#(origin.url("/\($0)"))","caption":"of \#($0)","score":0.\#($0)}"# }
        try await run(
            [list(rows, "rows.jsonl")],
            ["--keep-columns", "score", "--out", folder.path("shards"), "--format", "webdataset", "--per-shard", "25"])
        let said = try await peer(
            """
            import glob, sys, datasets, webdataset
            shards = sorted(glob.glob(sys.argv[1] + "/*.tar"))
            loaded = list(datasets.load_dataset("webdataset", data_files=shards, split="train", streaming=True))
            assert all(row["jpg"] is not None for row in loaded)
            samples = list(webdataset.WebDataset(shards, shardshuffle=False))
            formats = {sample["jpg"][:4] for sample in samples}
            print(len(shards), len(loaded), len(samples), sorted(formats), {type(row["json"]["score"]) for row in loaded}, loaded[7]["txt"])
            """, [folder.path("shards")])
        #expect(said == "3 60 60 [b'GIF8', b'RIFF', b'\\x89PNG', b'\\xff\\xd8\\xff\\xe0'] {<class 'float'>} of 7\n")
    }

    @Test("DuckDB and pyarrow write the same tables, with images in them and without", .thorough, .needsPyPI)
    func tables() async throws {
        let rows = (0..<60).map { index in
            let odd = index % 7 == 0 ? "null" : index % 2 == 0 ? "0.5" : #""t""#
            let path = index % 9 == 8 ? "/none" : "/\(index)"
            return #"{"url":"\#(origin.url(path))","alt":"of \#(index)","n":\#(index),"x":[\#(index)],"#
                + #""odd":\#(odd),"yes":\#(index % 2 == 0),"WIDTH":1.5}"#
        }
        try await run([list(rows, "rows.jsonl")], ["--keep-columns", "n,odd,x,yes,WIDTH"])
        let path = try await PythonTools.path()
        for (name, program) in [("duckdb", "\(path)/bin/duckdb"), ("pyarrow", "")] {
            for format in ["parquet", "parquet-metadata"] {
                let child = try await ChildProcess(
                    builtProduct("prefetch-coord"),
                    [
                        "export", "--format", format, "--out", folder.path("\(name)-\(format)"), "--per-shard", "25",
                        "--cache", cache,
                    ], environment: ["PREFETCH_DUCKDB": program, "PATH": "/usr/bin:/bin", "PYTHONPATH": path])
                #expect(await child.wait() == .exited(0), "\(child.stderr)")
            }
        }
        // Tables of lines that are cut in another way are none of these shards.
        let other = try await ChildProcess(
            builtProduct("prefetch-coord"),
            ["export", "--format", "parquet-metadata", "--out", folder.path("duckdb-parquet"), "--cache", cache],
            environment: ["PREFETCH_DUCKDB": "\(path)/bin/duckdb", "PYTHONPATH": path])
        #expect(
            await other.wait() == .exited(73) && other.stderr.contains("00000_stats.json is there already"),
            "\(other.stderr)")
        let said = try await PythonTools.run(
            """
            import hashlib, os, sys, pyarrow.parquet as parquet
            tables = {}
            for form in ("parquet", "parquet-metadata"):
                for number in range(3):
                    one, two = (parquet.read_table(f"{sys.argv[1]}/{name}-{form}/{number:05}.parquet") for name in ("duckdb", "pyarrow"))
                    assert one.schema.remove_metadata().equals(two.schema), (one.schema, two.schema)
                    assert one.to_pylist() == two.to_pylist()
                    tables[form, number] = one
            rows = [row for number in range(3) for row in tables["parquet", number].to_pylist()]
            for row in rows:
                assert (row["status"] == "success") == (row["jpg"] is not None), row
                if row["jpg"]: assert hashlib.sha256(row["jpg"]).hexdigest() == row["sha256"]
            bare = [row for number in range(3) for row in tables["parquet-metadata", number].to_pylist()]
            assert [{name: value for name, value in row.items() if name != "jpg"} for row in rows] == bare
            print({field.name: str(field.type) for field in tables["parquet", 0].schema})
            print(rows[14]["x"], rows[14]["odd"], rows[4]["odd"], rows[1]["odd"], rows[8]["error_message"], rows[8]["width"], len(rows))
            print(sorted(os.listdir(sys.argv[1] + "/duckdb-parquet"))[:2], len(os.listdir(sys.argv[1] + "/duckdb-parquet-metadata")))
            """, [folder.path(".")])
        #expect(
            said == """
                {'list_WIDTH': 'double', 'n': 'int64', 'odd': 'string', 'x': 'string', 'yes': 'bool', 'caption': 'string', \
                'url': 'string', 'key': 'string', 'status': 'string', 'error_message': 'string', 'width': 'int32', \
                'height': 'int32', 'original_width': 'int32', 'original_height': 'int32', 'exif': 'string', \
                'sha256': 'string', 'stored_sha256': 'string', 'jpg': 'binary'}
                [14] None 0.5 t httpError 404 None 60
                ['00000.parquet', '00000_stats.json'] 3

                """)
    }

    @Test("img2dataset makes the same shards of the same Parquet files", .thorough, .needsPeers)
    func same() async throws {
        let said = try await peer(
            """
            import glob, json, sys, tarfile
            import img2dataset, pyarrow, pyarrow.parquet as parquet
            folder, base = sys.argv[1], sys.argv[2]
            import os
            os.makedirs(folder + "/lists")
            for part, (first, last) in enumerate([(0, 11), (11, 18)]):
                n = range(first, last)
                parquet.write_table(pyarrow.table({
                    "uid": [f"u{i:04}" for i in n], "URL": [f"{base}/{i // 4 * 6 + i % 4}" if i % 5 else f"{base}/none{i}" for i in n],
                    "TEXT": [f"ein Käfer, {i}" if i % 4 else None for i in n], "similarity": [i / 7 for i in n],
                    "punsafe": [i % 2 == 0 for i in n], "big": [i * 10**12 for i in n]}), f"{folder}/lists/{part}.parquet")
            # What it stores unchanged it does not decode, and has no width of.
            for name, is_same in (("bytes", True), ("theirs", False)):
                img2dataset.download(
                    url_list=folder + "/lists", input_format="parquet", url_col="URL", caption_col="TEXT",
                    save_additional_columns=["big", "punsafe", "similarity", "uid"], output_folder=f"{folder}/{name}",
                    output_format="webdataset", number_sample_per_shard=4, processes_count=1, thread_count=4,
                    disable_all_reencoding=is_same, resize_mode="no", compute_hash="sha256", enable_wandb=False, retries=0)
            print("made")
            """, [folder.path("."), origin.url("")])
        #expect(said.hasSuffix("made\n"), "\(said)")
        try await run(
            [folder.path("lists")],
            [
                "--keep-columns", "uid,similarity,punsafe,big", "--out", folder.path("ours"), "--format", "webdataset",
                "--per-shard", "4", "--tries", "1",
            ])
        let compared = try await peer(
            """
            import glob, json, os, sys, tarfile
            import pyarrow.parquet as parquet
            folder = sys.argv[1]
            names = [sorted(os.path.basename(path) for path in glob.glob(f"{folder}/{side}/*")) for side in ("ours", "theirs")]
            assert names[0] == names[1], names
            def members(path):
                archive = tarfile.open(path)
                return {member.name: archive.extractfile(member).read() for member in archive}
            images = fields = 0
            for name in [name for name in names[0] if name.endswith(".tar")]:
                ours, theirs, same = (members(f"{folder}/{side}/{name}") for side in ("ours", "theirs", "bytes"))
                assert sorted(ours) == sorted(theirs), (name, sorted(ours), sorted(theirs))
                for member, body in theirs.items():
                    if member.endswith(".json"):
                        one, two = json.loads(ours[member]), json.loads(body)
                        assert one.pop("stored_sha256") == one["sha256"]
                        # A picture without EXIF has none for both.
                        assert list(one) == list(two), (list(one), list(two))
                        assert one == two, (one, two)
                        fields += len(two)
                    else:
                        assert ours[member] == same[member], member
                    images += member.endswith(".jpg")
            for name in [name for name in names[0] if name.endswith(".parquet")]:
                ours, theirs = (parquet.read_table(f"{folder}/{side}/{name}") for side in ("ours", "theirs"))
                assert ours.schema.names[-1] == "stored_sha256"
                ours = ours.drop(["stored_sha256"])
                assert ours.schema.remove_metadata().equals(theirs.schema.remove_metadata()), (ours.schema, theirs.schema)
                # Theirs has rows in the order of their ends.
                rows = [sorted(table.to_pylist(), key=lambda row: row["key"]) for table in (ours, theirs)]
                for one, two in zip(*rows, strict=True):
                    for row in (one, two):
                        row["error_message"] = row["error_message"] is not None
                    assert one == two, (one, two)
            for name in [name for name in names[0] if name.endswith("_stats.json")]:
                one, two = (json.load(open(f"{folder}/{side}/{name}")) for side in ("ours", "theirs"))
                assert set(one) - set(two) == {"batch", "per_shard", "images", "lines_sha256", "columns"} and not set(two) - set(one), (one, two)
                for field in ("count", "successes", "failed_to_download", "failed_to_resize"):
                    assert one[field] == two[field], (name, field, one, two)
                assert one["status_dict"].get("success") == two["status_dict"].get("success")
            print(len(names[0]), "files,", images, "images,", fields, "fields")
            """, [folder.path(".")])
        // Shards end with their file: 4, 4 and 3 lines of the first, 4 and 3 of the second.
        #expect(compared == "15 files, 14 images, 210 fields\n")
    }
}
