internal import FoundationEssentials
internal import Glibc
internal import WebImage

/// The program that reads Parquet: DuckDB's command line, or Python with pyarrow. It is a child that gets the file as its standard input, and
/// writes a row as a line of JSON; nothing of the file is read in this process.
struct ParquetProgram {
    private enum Kind {
        case duckdb, pyarrow
    }

    /// What a row is made of, as `column_name` and `column_type` of DuckDB's DESCRIBE.
    struct Column: Decodable {
        let name: String
        let type: String

        private enum CodingKeys: String, CodingKey {
            case name = "column_name", type = "column_type"
        }

        /// The expression of SQL that JSON has the value of: numbers and truth as such, but null for what is no number; lists and
        /// structures as arrays and objects; everything else as text.
        var value: String {
            let name = ParquetProgram.quoted(name)
            if type.hasSuffix("]") || ["STRUCT", "MAP", "UNION", "VARIANT", "JSON"].contains(where: type.hasPrefix) {
                return "to_json(\(name))"
            }
            switch type {
            case "FLOAT", "DOUBLE": return "case when isfinite(\(name)) then \(name) end"
            case "BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER",
                "UBIGINT", "UHUGEINT":
                return name
            default: return type.hasPrefix("DECIMAL") ? name : "cast(\(name) as varchar)"
            }
        }
    }

    private struct Rows: Decodable {
        let rows: Int
    }

    /// The file in the child.
    private static let input = "/proc/self/fd/0"

    let path: String
    private let kind: Kind

    /// PREFETCH_DUCKDB, or `duckdb` beside this program or in PATH; otherwise `python3`, if it has pyarrow.
    /// - Throws: `unreadableList` with the commands that install one.
    static func find() throws(PrefetchError) -> ParquetProgram {
        let environment = ProcessInfo.processInfo.environment
        if let path = environment["PREFETCH_DUCKDB"], !path.isEmpty { return ParquetProgram(path: path, kind: .duckdb) }
        // An environment of Python need not be active for its programs to be run.
        let paths = (environment["PATH"] ?? "").split(separator: ":").filter { $0.hasPrefix("/") }
        let folders =
            [ProgramFolder.path].filter { !$0.isEmpty } + paths.map { $0.hasSuffix("/") ? String($0) : $0 + "/" }
        func find(_ name: String) -> String? {
            folders.map { $0 + name }.first { (path: String) in
                access(path, X_OK) == 0
            }
        }
        if let path = find("duckdb") { return ParquetProgram(path: path, kind: .duckdb) }
        if let path = find("python3") {
            let program = ParquetProgram(path: path, kind: .pyarrow)
            if (try? program.output(of: ["-c", "import pyarrow.parquet"], file: nil)) != nil { return program }
        }
        throw PrefetchError(
            .unreadableList, "Parquet is read by DuckDB, and there is no duckdb in PATH",
            hint: "pip install duckdb-cli, or pip install pyarrow; or name a duckdb with PREFETCH_DUCKDB")
    }

    /// The columns of a file, and the number of the rows that a condition is true for.
    /// - Throws: `unreadableList` if it is cut or damaged; `configuration` for a condition where there is no DuckDB.
    func columns(
        of file: String, where condition: String?
    ) throws(PrefetchError) -> (columns: [Column], rows: Int) {
        guard condition == nil || kind == .duckdb else {
            throw PrefetchError(
                .configuration, "--where is answered by DuckDB, and there is no duckdb in PATH",
                hint: "pip install duckdb-cli, or name one with PREFETCH_DUCKDB")
        }
        let lines = try output(of: words(.columns(condition)), file: file).split(separator: 0x0A)
        let decoder = JSONDecoder()
        let columns = lines.compactMap { try? decoder.decode(Column.self, from: Data($0)) }
        guard !columns.isEmpty, let last = lines.last, let rows = try? decoder.decode(Rows.self, from: Data(last))
        else {
            throw failure(file, "it does not say what columns there are")
        }
        return (columns, rows.rows)
    }

    /// Starts to write rows.
    /// * `columns`: those with the URL, with the digest, and those that are kept.
    /// * `condition`: which rows; nil: all.
    /// - Throws: `unreadableList`.
    func rows(
        of file: String, _ columns: [Column], _ places: TableColumns, where condition: String?
    ) throws(PrefetchError) -> ParquetRows {
        try start(words(.rows(columns, places, condition)), file: file)
    }

    /// Writes rows as Parquet, with snappy.
    /// * `rows`: lines of JSON, a file that is at its beginning; `longest`: bytes of the longest.
    /// * `called`: the file in messages.
    /// - Returns: 0, or an errno of writing.
    /// - Throws: `inputOutput` with the words of the program.
    func write(
        _ columns: [TypedColumn], rows: Int32, longest: Int, to output: Int32, called name: String
    ) throws(PrefetchError) -> Int32 {
        let child: ChildPipe
        do throws(ChildPipe.StartError) {
            child = try ChildPipe(path, words(.table(columns, longest: longest)), input: rows)
        } catch {
            throw PrefetchError(
                .inputOutput, "cannot run \(path): \(error.reason)", hint: "see PREFETCH_DUCKDB, or your PATH")
        }
        let pipe = child.takeOutput()
        defer { close(pipe) }
        var buffer = [UInt8](repeating: 0, count: 1 << 18)
        while true {
            let count = read(pipe, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            let code = OpenFile.write(Array(buffer[..<count]), to: output)
            guard code == 0 else { return code }
        }
        guard let reason = child.failure() else { return 0 }
        throw PrefetchError(
            .inputOutput, "cannot write \(PathText.shown(name)): \(reason)",
            hint: "that is what \(path) says; --sidecar jsonl writes it without")
    }

    private func output(of words: [String], file: String?) throws(PrefetchError) -> [UInt8] {
        let rows = try start(words, file: file)
        var bytes: [UInt8] = []
        while case .bytes(let piece) = try rows.next(waitLimit: -1) { bytes += piece }
        try rows.finish()
        return bytes
    }

    func failure(_ file: String, _ reason: String) -> PrefetchError {
        PrefetchError(
            .unreadableList, "cannot read \(PathText.shown(file)): \(reason)",
            hint: "that is what \(path) says of it")
    }

    private func start(_ words: [String], file: String?) throws(PrefetchError) -> ParquetRows {
        let input = try ListFile.open(file ?? "/dev/null")
        defer { close(input) }
        do throws(ChildPipe.StartError) {
            return ParquetRows(try ChildPipe(path, words, input: input), of: file ?? path, by: self)
        } catch {
            throw PrefetchError(
                .unreadableList, "cannot run \(path): \(error.reason)", hint: "see PREFETCH_DUCKDB, or your PATH")
        }
    }

    // MARK: What it is asked

    private enum Question {
        case columns(String?)
        case rows([Column], TableColumns, String?)
        case table([TypedColumn], longest: Int)
    }

    private func words(_ question: Question) -> [String] {
        switch kind {
        case .duckdb:
            // Nothing of the user's own settings, and no extension from elsewhere.
            // A group of rows is written at once: with images in them it takes what it takes.
            var hasImages = false
            if case .table(let columns, _) = question { hasImages = columns.contains { $0.kind == .bytes } }
            let settings =
                "set autoinstall_known_extensions=false; set autoload_known_extensions=false; set threads=1; "
                + "set preserve_insertion_order=true" + (hasImages ? "" : "; set memory_limit='1GB'")
            return ["-init", "/dev/null", "-batch", "-bail", "-jsonlines", "-c", settings]
                + Self.queries(question).flatMap { ["-c", $0] }
        case .pyarrow:
            switch question {
            case .columns: return ["-c", Self.python, "columns"]
            case .rows(let columns, let places, _):
                let kept = places.kept.flatMap { [$0.name, columns[$0.column].name] }
                return ["-c", Self.python, "rows", columns[places.url].name]
                    + [places.sha256.map { columns[$0].name } ?? ""] + kept
            case .table(let columns, _):
                return ["-c", Self.python, "table"] + columns.flatMap { [$0.name, $0.kind.rawValue] }
            }
        }
    }

    private static func queries(_ question: Question) -> [String] {
        let table = "read_parquet('\(input)')"
        switch question {
        case .columns(let condition):
            return ["describe select * from \(table)", "select count(*) as rows from \(table)" + filter(condition)]
        case .rows(let columns, let places, let condition):
            func text(_ column: Int) -> String { "coalesce(cast(\(quoted(columns[column].name)) as varchar), '')" }
            var members = ["\(text(places.url)) as url"]
            if let sha256 = places.sha256 { members.append("nullif(\(text(sha256)), '') as sha256") }
            if !places.kept.isEmpty {
                let kept = places.kept.map { "\(quoted($0.name)) := \(columns[$0.column].value)" }
                members.append("struct_pack(\(kept.joined(separator: ", "))) as columns")
            }
            // Copied: what is selected stays in memory until all rows are printed. And by that name, which cannot be replaced.
            return [
                "copy (select \(members.joined(separator: ", ")) from \(table)" + filter(condition)
                    + ") to '/proc/self/fd/1' (format json, use_tmp_file false)"
            ]
        case .table(let columns, let longest):
            let values = columns.map {
                $0.kind == .bytes ? "from_base64(\(quoted($0.name))) as \(quoted($0.name))" : quoted($0.name)
            }
            let types = columns.map { column in
                "'\(column.name.replacing("'", with: "''"))': '\((column.kind == .bytes ? .text : column.kind).rawValue)'"
            }
            let rows =
                "read_json('\(input)', format='newline_delimited', maximum_object_size=\(longest + 1_024), "
                + "columns={\(types.joined(separator: ", "))})"
            let groups = columns.contains { $0.kind == .bytes } ? ", row_group_size 2048" : ""
            return [
                "copy (select \(values.joined(separator: ", ")) from \(rows)) to '/dev/stdout' "
                    + "(format parquet, compression snappy\(groups))"
            ]
        }
    }

    private static func filter(_ condition: String?) -> String { condition.map { " where (\n\($0)\n)" } ?? "" }

    /// A name of SQL.
    fileprivate static func quoted(_ name: String) -> String { "\"\(name.replacing("\"", with: "\"\""))\"" }

    private static let python = """
        import base64, itertools, json, math, sys
        import pyarrow, pyarrow.parquet as parquet
        if sys.argv[1] == "table":
            kinds = {"VARCHAR": pyarrow.string(), "INTEGER": pyarrow.int32(), "BIGINT": pyarrow.int64(), "DOUBLE": pyarrow.float64(),
                     "BOOLEAN": pyarrow.bool_(), "BLOB": pyarrow.binary()}
            columns = list(zip(sys.argv[2::2], sys.argv[3::2]))
            def value(item, kind):
                if item is None: return None
                if kind == "BLOB": return base64.b64decode(item)
                return json.dumps(item, ensure_ascii=False) if kind == "VARCHAR" and not isinstance(item, str) else item
            schema = pyarrow.schema([(name, kinds[kind]) for name, kind in columns])
            size = 128 if any(kind == "BLOB" for _, kind in columns) else 16384
            with parquet.ParquetWriter(sys.stdout.buffer, schema, compression="snappy") as table:
                while rows := [json.loads(line) for line in itertools.islice(sys.stdin.buffer, size)]:
                    arrays = [pyarrow.array([value(row[name], kind) for row in rows], kinds[kind]) for name, kind in columns]
                    table.write_batch(pyarrow.record_batch(arrays, schema=schema))
            sys.exit()
        file = parquet.ParquetFile(open("/proc/self/fd/0", "rb"))
        if sys.argv[1] == "columns":
            for field in file.schema_arrow:
                print(json.dumps({"column_name": field.name, "column_type": str(field.type)}))
            print(json.dumps({"rows": file.metadata.num_rows}))
            sys.exit()
        url, digest, kept = sys.argv[2], sys.argv[3], list(zip(sys.argv[4::2], sys.argv[5::2]))
        names = list(dict.fromkeys([url] + ([digest] if digest else []) + [column for _, column in kept]))
        def text(value): return "" if value is None else str(value)
        def typed(value):
            if isinstance(value, float): return value if math.isfinite(value) else None
            if isinstance(value, dict): return {str(name): typed(item) for name, item in value.items()}
            if isinstance(value, (list, tuple)): return [typed(item) for item in value]
            return value if value is None or isinstance(value, (bool, int, str)) else str(value)
        for batch in file.iter_batches(columns=names):
            rows = {name: batch.column(names.index(name)).to_pylist() for name in names}
            for row in range(batch.num_rows):
                line = {"url": text(rows[url][row])}
                if digest and rows[digest][row]: line["sha256"] = text(rows[digest][row])
                if kept: line["columns"] = {name: typed(rows[column][row]) for name, column in kept}
                sys.stdout.write(json.dumps(line, ensure_ascii=False) + "\\n")
        """
}

/// Rows of a Parquet file, as lines.
final class ParquetRows {
    private var input: InputBytes
    private let child: ChildPipe
    private let file: String
    private let program: ParquetProgram

    init(_ child: ChildPipe, of file: String, by program: ParquetProgram) {
        (self.child, self.file, self.program) = (child, file, program)
        input = InputBytes(child.takeOutput(), path: file)
    }

    /// What comes within so many milliseconds; -1: for as long as it takes.
    func next(waitLimit: Int32) throws(PrefetchError) -> InputBytes.Piece { try input.next(waitLimit: waitLimit) }

    /// Waits for the end of the program, once there are no more lines.
    /// - Throws: `unreadableList` with its last words if it failed.
    func finish() throws(PrefetchError) {
        guard let reason = child.failure() else { return }
        throw program.failure(file, reason)
    }
}
