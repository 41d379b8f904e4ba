import Testing

@testable import Prefetch

@Suite("Tables", .timeLimit(.minutes(1)))
struct CSVReaderTests {
    /// The rows of a text, read in pieces of so many bytes.
    private func rows(_ text: String, by size: Int = .max, separator: String = ",") throws -> [CSVReader.Record] {
        var rows: [CSVReader.Record] = []
        var reader = CSVReader(separator: Array(separator.utf8)[0])
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            try reader.read(bytes.prefix(size)) { row throws(PrefetchError) in rows.append(row) }
            bytes = bytes.dropFirst(size)
        }
        try reader.finish { row throws(PrefetchError) in rows.append(row) }
        return rows
    }

    private func fields(_ text: String, by size: Int = .max, separator: String = ",") throws -> [[String]] {
        try rows(text, by: size, separator: separator).map { $0.fields.map { String(decoding: $0, as: UTF8.self) } }
    }

    @Test(
        "Quotes, line ends in fields, marks and missing ends are read as RFC 4180 and people write them",
        arguments: [
            ("a,b\n1,2\n", [["a", "b"], ["1", "2"]]),
            ("a,b\r\n1,2", [["a", "b"], ["1", "2"]]),
            ("\u{FEFF}a,b\n", [["a", "b"]]),
            ("\u{FEFF}\"a,x\",b\n", [["a,x", "b"]]),
            ("\"a\"\"b\",\"c\nd\"\n", [["a\"b", "c\nd"]]),
            ("\"a\r\nb\"\r\n", [["a\r\nb"]]),
            ("a,,\n,\n", [["a", "", ""], ["", ""]]),
            ("\n\n a \n\n", [[" a "]]),
            ("\"\",x\n", [["", "x"]]),
            ("a\"b,c\"\n", [["a\"b", "c\""]]),
            ("\"a\"b,c\n", [["ab", "c"]]),
            ("\"last\"", [["last"]]),
            ("\"last\"\r\n", [["last"]]),
            ("", []),
            ("\n", []),
        ] as [(String, [[String]])])
    func reading(text: String, expected: [[String]]) throws {
        // However the bytes come.
        for size in [1, 2, 3, 7, .max] { #expect(try fields(text, by: size) == expected, "in pieces of \(size)") }
    }

    @Test("Tabs separate where they are to, and commas do not")
    func tabs() throws {
        #expect(try fields("a,b\tc\n", separator: "\t") == [["a,b", "c"]])
    }

    @Test("A row knows its lines, also behind fields of several")
    func lines() throws {
        let rows = try rows("h\n\n\"x\ny\nz\",1\nlast\n")
        #expect(rows.map(\.line) == [1, 3, 6] && rows.map(\.lines) == [1, 3, 1])
    }

    @Test("A quote that is not closed is named by its line, at the end and before it takes all memory")
    func endless() throws {
        for text in ["a\n\"b\nc\n", "a\n\"" + String(repeating: "x\n", count: CSVReader.longest)] {
            let error = #expect(throws: PrefetchError.self) { try rows(text) }
            #expect(error?.message == "line 2: a quote that begins there is not closed")
        }
    }
}
