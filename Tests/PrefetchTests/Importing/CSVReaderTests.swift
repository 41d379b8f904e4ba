import Origin
import Testing

@testable import Prefetch

@Suite("Tables", .timeLimit(.minutes(5)))
struct CSVReaderTests {
    /// The rows of a text, read in pieces of so many bytes.
    private func rows(
        _ text: String, by size: Int = .max, separator: String = ",", longest: Int = LineReader.longest
    ) throws -> [CSVReader.Record] {
        var rows: [CSVReader.Record] = []
        var reader = CSVReader(separator: Array(separator.utf8)[0], longest: longest)
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            try reader.read(bytes.prefix(size)) { row throws(PrefetchError) in rows.append(row) }
            bytes = bytes.dropFirst(size)
        }
        try reader.finish { row throws(PrefetchError) in rows.append(row) }
        return rows
    }

    private func fields(_ text: String, by size: Int = .max, separator: String = ",") throws -> [[String]] {
        try rows(text, by: size, separator: separator).map { row in
            (0..<row.count).map { String(decoding: row[$0], as: UTF8.self) }
        }
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

    @Test("A text has the same rows in pieces of any size")
    func pieces() throws {
        let seed = UInt64.random(in: 0 ... .max)
        var random = SplitMix64(state: seed)
        let parts = ["a", "bc", "\"", "\"\"", ",", "\n", "\r\n", "\r", "\u{FEFF}", "é", " ", "http://h/1"]
        for _ in 0..<2_000 {
            let text = (0..<Int.random(in: 1...12, using: &random)).map { _ in parts.randomElement(using: &random)! }
                .joined()
            let whole = Result { try fields(text) }
            for size in 1...5 {
                let cut = Result { try fields(text, by: size) }
                #expect(
                    (try? cut.get()) == (try? whole.get()),
                    "seed \(seed): \(text.debugDescription) in pieces of \(size)")
            }
        }
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

    @Test("A quote that is not closed is named by its line; a row that is too long too, before it takes all memory")
    func endless() throws {
        let open = #expect(throws: PrefetchError.self) { try rows("a\n\"b\nc\n") }
        #expect(open?.message == "line 2: a quote that begins there is not closed")
        let most = 1 << 20
        let long = String(repeating: "x", count: most - 2)
        #expect(try rows("a\n\(long)\nb\n", longest: most).count == 3)
        let row = #expect(throws: PrefetchError.self) { try rows("a\n\(long),x\n", longest: most) }
        #expect(row?.message == "line 2: the row is longer than 1 MiB")
        let quoted = #expect(throws: PrefetchError.self) { try rows("a\nb,\"\(long)", longest: most) }
        #expect(quoted?.message == "line 2: the row is longer than 1 MiB; the quote in line 2 is not closed")
    }

    @Test("A quoted field of more than ten lines, or with a URL on a further line, is odd")
    func odd() throws {
        let many = String(repeating: "x\n", count: 10)
        for (text, line, lines, hasURL) in [
            ("h\na,\"\(many)x\"\n", 2, 11, false), ("h\n\"a\nb\",\"\(many)x\",\"a\nb\"\n", 3, 11, false),
            ("h\n\"love\nhttp://h/1\tb\"\n", 2, 2, true), ("\"a\r\nb https://h/1\"", 1, 2, true),
        ] {
            let tall = try #require(try rows(text).last?.tall)
            #expect(tall.isOdd && tall == CSVReader.Tall(line: line, lines: lines, hasURL: hasURL), "\(text)")
        }
        for text in [
            "a,\"\(many)\"\n".replacing("x\nx\n", with: "x\n"), "\"http://h/1\nb\"\n", "\"http://h/1\"\nhttp://h/2\n",
        ] {
            #expect(try rows(text).allSatisfy { $0.tall?.isOdd != true }, "\(text)")
        }
    }
}
