import Foundation
import Origin
import TestSupport
import Testing

/// SeaweedFS of PyPI: a store with signatures, in a folder of its own. Ended with the last reference.
private final class SeaweedFS: Sendable {
    let endpoint: String
    private let folder = TemporaryDirectory()
    private let server: ChildProcess
    /// Its program makes sockets there, whatever it is told.
    private let sockets: [String]

    init() async throws {
        let program = try #require(try await PythonTools.folder("stores")) + "/bin/weed"
        let ports = (0..<8).map { _ in freePort() }
        endpoint = "http://127.0.0.1:\(ports[0])"
        sockets = ["s3", "master", "volume", "filer"].enumerated().map {
            "/tmp/seaweedfs-\($1)-grpc-\(ports[$0 + 1]).sock"
        }
        folder.write(
            Array(
                #"""
                {"identities": [{"name": "t", "credentials": [{"accessKey": "AK", "secretKey": "S/K+="}],
                "actions": ["Admin", "Read", "Write", "List"]}]}
                """#.utf8), to: "s3.json")
        try FileManager.default.createDirectory(atPath: folder.path("data"), withIntermediateDirectories: false)
        server = try await ChildProcess(
            program,
            [
                "server", "-dir=\(folder.path("data"))", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-master.peers=none",
                "-master.telemetry=false", "-master.volumeSizeLimitMB=64", "-volume.max=100", "-filer", "-s3",
                "-s3.config=\(folder.path("s3.json"))", "-s3.port=\(ports[0])", "-s3.port.grpc=\(ports[1])",
                "-s3.port.iceberg=0", "-s3.port.lance=0", "-s3.iam=false", "-s3.autoCreateBucket=false",
                "-s3.localSocket=\(folder.path("s3"))", "-master.port.grpc=\(ports[2])",
                "-volume.port.grpc=\(ports[3])", "-filer.port.grpc=\(ports[4])", "-master.port=\(ports[5])",
                "-volume.port=\(ports[6])", "-filer.port=\(ports[7])", "-filer.localSocket=\(folder.path("filer"))",
            ], environment: ["HOME": folder.path])
        // The bucket is made by the first request that it takes.
        try await until {
            try await self.python("store.create_dir('images')", isRequired: false) != nil || !self.server.isRunning
        }
        try #require(server.isRunning, "\(server.stderr)")
    }

    deinit { for socket in sockets { unlink(socket) } }

    var environment: [String: String] {
        [
            "AWS_ACCESS_KEY_ID": "AK", "AWS_SECRET_ACCESS_KEY": "S/K+=", "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": endpoint,
        ]
    }

    /// What a program says whose `store` is pyarrow's client for S3; nil where it fails and may.
    @discardableResult func python(
        _ program: String, _ arguments: [String] = [], isRequired: Bool = true
    ) async throws -> String? {
        let head = """
            import sys, tarfile, pyarrow.fs, pyarrow.parquet
            store = pyarrow.fs.S3FileSystem(
                access_key="AK", secret_key="S/K+=", endpoint_override=sys.argv[1], region="us-east-1",
                allow_bucket_creation=True, connect_timeout=1, request_timeout=5)

            """
        let child = try await ChildProcess(
            "/usr/bin/env", ["python3", "-B", "-c", head + program, endpoint] + arguments,
            environment: ["PYTHONPATH": try await PythonTools.path()])
        let end = await child.wait()
        if isRequired { #expect(end == .exited(0), "\(child.stderr)") }
        return end == .exited(0) ? child.stdout : nil
    }
}

/// A store that others have made, and a reader that others have made.
@Suite("Shards in a bucket, as others store and read them", .timeLimit(.minutes(5)))
struct BucketReaderTests: FolderSuite {
    let folder = TemporaryDirectory()

    @Test("pyarrow reads of SeaweedFS what run has put there, in parts too", .thorough, .needsStores)
    func seaweed() async throws {
        let origin = try OriginServer()
        // 290 of them are longer than a part.
        let images = (0..<300).map { GeneratedImage.png(seed: UInt64($0), width: 480, height: 320) }
        for (index, image) in images.enumerated() { origin.route("/\(index).png", OriginResponse(body: image)) }
        #expect(images.prefix(290).reduce(0) { $0 + $1.count } > 64 << 20)
        let rows = (0..<300).map { #"{"url":"\#(origin.url("/\($0).png"))","caption":"of \#($0)"}"# }
        let store = try await SeaweedFS()
        for (form, prefix) in [("webdataset", "a b+\u{E9}/w"), ("parquet", "p")] {
            let child = try await ChildProcess(
                builtProduct("prefetch-coord"),
                [
                    "run", list(rows), "--cache", folder.path("cache"), "--allow-net", "127.0.0.0/8", "-n", "1", "-q",
                    "--format", form, "--per-shard", "290", "--out", "s3://images/\(prefix)",
                ],
                environment: store.environment.merging([
                    "PREFETCH_DUCKDB": try await PythonTools.path() + "/bin/duckdb",
                    "PYTHONPATH": try await PythonTools.path(),
                ]) { $1 })
            #expect(await child.wait() == .exited(0), "\(child.stderr)")
        }
        let said = try await store.python(
            """
            names = sorted(info.base_name for info in store.get_file_info(pyarrow.fs.FileSelector("images/" + sys.argv[2])))
            print(*names)
            members = {}
            for shard in ("00000", "00001"):
                with store.open_input_stream(f"images/{sys.argv[2]}/{shard}.tar") as file, tarfile.open(fileobj=file, mode="r|") as tar:
                    for member in tar:
                        members[member.name] = tar.extractfile(member).read()
            tables = [pyarrow.parquet.read_table(f"images/{prefix}/{shard}.parquet", filesystem=store).to_pylist()
                      for prefix in sys.argv[2:] for shard in ("00000", "00001")]
            print(len(members), [len(table) for table in tables])
            for rows in (tables[0] + tables[1], tables[2] + tables[3]):
                for row in rows:
                    assert row["caption"] == "of " + row["url"].rsplit("/", 1)[1].split(".")[0]
                    assert members[row["key"] + ".txt"].decode() == row["caption"]
                    assert row.get("jpg", members[row["key"] + ".jpg"]) == members[row["key"] + ".jpg"]
            print(sum(len(members[name]) for name in members if name.endswith(".jpg")))
            """, ["a b+\u{E9}/w", "p"])
        #expect(
            said == """
                00000.parquet 00000.tar 00000_stats.json 00001.parquet 00001.tar 00001_stats.json
                900 [290, 10, 290, 10]
                \(images.reduce(0) { $0 + $1.count })

                """)
    }
}
