package import PrefetchModel

extension WebImageError {
    /// An error in words, for who waited for the same download.
    package var note: String {
        let page = page.map { "\($0.digest) \($0.place ?? "")" } ?? ""
        let numbers = [
            code.rawValue, httpStatus ?? 0, Int(underlyingCode ?? 0), isTransient ? 1 : 0, isIncompleteImage ? 1 : 0,
        ]
        let head = numbers.map(String.init) + [reason?.rawValue ?? "-", unverifiedFormat?.rawValue ?? "-"]
        return [head.joined(separator: " "), page, message].joined(separator: "\n")
    }

    /// Nil for another text.
    package init?(note: String) {
        let lines = note.split(atByte: "\n", maxSplits: 2, omittingEmptySubsequences: false)
        guard lines.count == 3 else { return nil }
        let words = lines[0].split(atByte: " ")
        let numbers = words.prefix(5).compactMap { Int($0) }
        guard words.count == 7, numbers.count == 5 else { return nil }
        self.init(
            Code(rawValue: numbers[0]), String(lines[2]), reason: FailureReason(rawValue: String(words[5])),
            httpStatus: numbers[1] == 0 ? nil : numbers[1], underlyingCode: Int32(exactly: numbers[2]),
            isTransient: numbers[3] == 1)
        isIncompleteImage = numbers[4] == 1
        unverifiedFormat = ImageFormat(rawValue: String(words[6]))
        let marks = lines[1].split(atByte: " ", maxSplits: 1)
        guard let digest = marks.first.flatMap({ UInt64($0) }) else { return }
        page = PageMark(digest: digest, place: marks.count > 1 && !marks[1].isEmpty ? String(marks[1]) : nil)
    }
}
