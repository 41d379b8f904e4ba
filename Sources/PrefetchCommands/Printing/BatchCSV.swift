internal import Prefetch
internal import WebImage

/// A manifest as comma-separated values (RFC 4180): every text is quoted, an unknown value is empty.
enum BatchCSV {
    static let head = "line,url,outcome,path,bytes,sha256,format,width,height\r\n"

    /// One line of it, with its end.
    static func line(_ line: ExportedLine) -> String {
        func text(_ value: String?) -> String { value.map { "\"\($0.replacing("\"", with: "\"\""))\"" } ?? "" }
        func number(_ value: Int?) -> String { value.map(String.init) ?? "" }
        let image = line.image
        let fields = [
            number(line.result.line), text(line.result.url), text(line.result.outcome?.name), text(image?.path),
            number(image?.bytes), text(image?.sha256), text(image?.format?.rawValue), number(image?.width),
            number(image?.height),
        ]
        return fields.joined(separator: ",") + "\r\n"
    }
}
