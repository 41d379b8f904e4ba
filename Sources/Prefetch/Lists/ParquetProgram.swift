internal import FoundationEssentials
internal import Glibc

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

        /// Whether its values are written as JSON.
        var isNested: Bool {
            type.hasSuffix("]") || ["STRUCT", "MAP", "UNION", "VARIANT"].contains { type.hasPrefix($0) }
        }
    }

    private struct Rows: Decodable {
        let rows: Int
    }

    /// The file in the child.
    private static let input = "/proc/self/fd/0"

    let path: String
    private let kind: Kind

    /// PREFETCH_DUCKDB, or `duckdb` in PATH; otherwise `python3`, if it has pyarrow.
    /// - Throws: `unreadableList` with the commands that install one.
    static func find() throws(PrefetchError) -> ParquetProgram {
        let environment = ProcessInfo.processInfo.environment
        if let path = environment["PREFETCH_DUCKDB"], !path.isEmpty { return ParquetProgram(path: path, kind: .duckdb) }
        let folders = (environment["PATH"] ?? "").split(separator: ":").filter { $0.hasPrefix("/") }
        func find(_ name: String) -> String? {
            folders.map { "\($0)/\(name)" }.first { (path: String) in access(path, X_OK) == 0 }
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
    }

    private func words(_ question: Question) -> [String] {
        switch kind {
        case .duckdb:
            // Nothing of the user's own settings, and no extension from elsewhere.
            let settings =
                "set autoinstall_known_extensions=false; set autoload_known_extensions=false; set memory_limit='1GB'; "
                + "set threads=1; set preserve_insertion_order=true"
            return ["-init", "/dev/null", "-batch", "-bail", "-jsonlines", "-c", settings]
                + Self.queries(question).flatMap { ["-c", $0] }
        case .pyarrow:
            switch question {
            case .columns: return ["-c", Self.python, "columns"]
            case .rows(let columns, let places, _):
                let kept = places.kept.flatMap { [$0.name, columns[$0.column].name] }
                return ["-c", Self.python, "rows", columns[places.url].name]
                    + [places.sha256.map { columns[$0].name } ?? ""] + kept
            }
        }
    }

    private static func queries(_ question: Question) -> [String] {
        let table = "read_parquet('\(input)')"
        switch question {
        case .columns(let condition):
            return ["describe select * from \(table)", "select count(*) as rows from \(table)" + filter(condition)]
        case .rows(let columns, let places, let condition):
            func text(_ column: Int) -> String {
                let name = quoted(columns[column].name)
                let value = columns[column].isNested ? "to_json(\(name))" : name
                return "coalesce(cast(\(value) as varchar), '')"
            }
            var members = ["\(text(places.url)) as url"]
            if let sha256 = places.sha256 { members.append("nullif(\(text(sha256)), '') as sha256") }
            if !places.kept.isEmpty {
                let kept = places.kept.map { "\(quoted($0.name)) := \(text($0.column))" }
                members.append("struct_pack(\(kept.joined(separator: ", "))) as columns")
            }
            return [
                "select \(members.joined(separator: ", ")) from \(table)" + filter(condition)
            ]
        }
    }

    private static func filter(_ condition: String?) -> String { condition.map { " where (\n\($0)\n)" } ?? "" }

    /// A name of SQL.
    private static func quoted(_ name: String) -> String { "\"\(name.replacing("\"", with: "\"\""))\"" }

    private static let python = """
        import json, sys
        import pyarrow.parquet as parquet
        file = parquet.ParquetFile(open("/proc/self/fd/0", "rb"))
        if sys.argv[1] == "columns":
            for field in file.schema_arrow:
                print(json.dumps({"column_name": field.name, "column_type": str(field.type)}))
            print(json.dumps({"rows": file.metadata.num_rows}))
            sys.exit()
        url, digest, kept = sys.argv[2], sys.argv[3], list(zip(sys.argv[4::2], sys.argv[5::2]))
        names = list(dict.fromkeys([url] + ([digest] if digest else []) + [column for _, column in kept]))
        def text(value):
            if value is None or isinstance(value, str): return value or ""
            return json.dumps(value, default=str, ensure_ascii=False) if isinstance(value, (list, dict, bool)) else str(value)
        for batch in file.iter_batches(columns=names):
            rows = {name: batch.column(names.index(name)).to_pylist() for name in names}
            for row in range(batch.num_rows):
                line = {"url": text(rows[url][row])}
                if digest and rows[digest][row]: line["sha256"] = text(rows[digest][row])
                if kept: line["columns"] = {name: text(rows[column][row]) for name, column in kept}
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
