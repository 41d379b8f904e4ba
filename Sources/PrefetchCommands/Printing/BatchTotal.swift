internal import Prefetch

/// How large a batch is, as far as that is known while its list is read.
extension BatchStatus {
    /// Its total, or about how many URLs it will have; nil: unknown, as of a pipe.
    var expectedTotal: Int? {
        guard isOpen else { return total }
        return estimate > 0 ? max(estimate, total) : nil
    }

    /// URLs that have not ended, as far as is known.
    var left: Int { max(0, (expectedTotal ?? total) - counts.finished) }

    /// `1,234`, `about 1,230,000`, or `1,234 so far`
    var totalText: String {
        guard isOpen else { return Wording.count(total) }
        guard let expectedTotal else { return "\(Wording.count(total)) so far" }
        return "about \(Wording.count(Self.rounded(expectedTotal)))"
    }

    /// `12.3%`, or `~12.3%` of what is about the total; nil of an unknown one.
    var shareText: String? {
        expectedTotal.map { "\(isOpen ? "~" : "")\(Wording.share(counts.finished, of: $0))" }
    }

    /// To three digits.
    private static func rounded(_ number: Int) -> Int {
        var step = 1
        while number / step >= 1_000 { step *= 10 }
        return (number + step / 2) / step * step
    }

    /// What its list is called in messages.
    var listName: String {
        switch sources.first {
        case nil: PathText.shown(listPath)
        case "-": "standard input"
        case "pipe": "a pipe"
        case let path?:
            PathText.shown(path)
                + (sources.count > 1 ? " and \(Wording.count(sources.count - 1, "more list"))" : "")
        }
    }
}
