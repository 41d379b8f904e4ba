internal import PrefetchModel

/// A sheet as a page of HTML. No scripts and no requests; the policy in its head makes browsers enforce that, whatever a URL contains. All text
/// is escaped, so external text cannot become markup.
struct HTMLPage {
    let title: String
    /// Below the title.
    let note: String
    let sheet: Sheet

    /// Whether a page begins as that with a title that begins so.
    static func isPage(_ head: [UInt8], titled title: String) -> Bool {
        head.starts(with: "<!DOCTYPE html>".utf8) && !head.ranges(of: Array("<title>\(escaped(title))".utf8)).isEmpty
    }

    var text: String {
        """
        <!DOCTYPE html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta name="color-scheme" content="light dark">
        <meta name="generator" content="prefetch \(PrefetchVersion)">
        <title>\(Self.escaped(title))</title>
        <style>\(Self.style)</style>
        </head>
        <body>
        <main>
        <h1>\(Self.escaped(title))</h1>
        <p>\(Self.escaped(note))</p>
        \(sheet.parts.map(Self.element).joined())</main>
        </body>
        </html>

        """
    }

    private static func element(_ part: Sheet.Part) -> String {
        switch part {
        case .line(let line): return "<p>\(escaped(line))</p>\n"
        case .heading(let title, let note): return "<h2>\(escaped(title))</h2>\n<p>\(escaped(note))</p>\n"
        case .rows(let rows):
            let tiles = rows.map { "<div><dt>\(escaped($0.title))</dt><dd>\(escaped($0.text))</dd></div>\n" }
            return "<dl>\n\(tiles.joined())</dl>\n"
        case .table(let table):
            func row(_ tag: String, _ cells: [String]) -> String {
                let cells = zip(cells, table.isNumber).map { cell, isNumber in
                    "<\(tag)\(isNumber ? " class=\"n\"" : "")><bdi>\(escaped(shortened(cell)))</bdi></\(tag)>"
                }
                return "<tr>\(cells.joined())</tr>\n"
            }
            return "<div class=\"scroll\"><table>\n\(row("th", table.heads))"
                + table.rows.map { row("td", $0) }.joined() + "</table></div>\n"
        }
    }

    /// The beginning and the end of a long URL.
    private static func shortened(_ text: String) -> String {
        text.count <= 240 ? text : "\(text.prefix(160)) … \(text.suffix(80))"
    }

    /// Characters that move or reorder other text appear as their number.
    private static func escaped(_ text: String) -> String {
        TerminalText.escaped(text).reduce(into: "") { out, character in
            switch character {
            case "&": out += "&amp;"
            case "<": out += "&lt;"
            case ">": out += "&gt;"
            case "\"": out += "&quot;"
            case "'": out += "&#39;"
            default: out.append(character)
            }
        }
    }

    /// For light and dark mode, phones and paper.
    private static let style = """
        :root{--page:#fff;--text:#1b2330;--soft:#5b6675;--line:#e2e6ec}
        @media (prefers-color-scheme:dark){:root{--page:#11151b;--text:#e6eaf0;--soft:#98a4b3;--line:#2c3542}}
        @media print{:root{--page:#fff;--text:#000;--soft:#444;--line:#ccc}tr{break-inside:avoid}}
        body{margin:0;background:var(--page);color:var(--text);font:15px/1.5 system-ui,sans-serif;font-variant-numeric:tabular-nums}
        main{max-width:1120px;margin:0 auto;padding:12px 16px}
        h1{font-size:26px;margin:0;overflow-wrap:anywhere}h2{font-size:17px;margin:28px 0 0}
        p,dt,th{color:var(--soft);font-size:13px;font-weight:400;margin:0 0 8px;overflow-wrap:anywhere}
        dl{display:grid;grid-template-columns:repeat(auto-fit,minmax(130px,1fr));gap:12px}dd{margin:0;font-size:22px;font-weight:600;white-space:nowrap}
        .scroll{overflow-x:auto}table{border-collapse:collapse}
        th,td{padding:4px 16px 4px 0;border-bottom:1px solid var(--line);vertical-align:top;text-align:left;overflow-wrap:anywhere}
        td{min-width:7em}.n{text-align:right;white-space:nowrap;min-width:0}

        """
}
