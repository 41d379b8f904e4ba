/// Several lists as one: their lines in order, in a file of its own. The same lists give the same file.
package struct ListJoin: ~Copyable {
    private let output: LineOutput
    private let options: ListImport.Options

    /// - Throws: `cacheUnavailable` if the folder cannot be written.
    package init(into folder: String, options: ListImport.Options) throws(PrefetchError) {
        output = try LineOutput(in: folder)
        self.options = options
    }

    /// What was found in a list.
    package struct Part: Sendable {
        package var header = ListImport.Header()
        package var unknownMembers = UnknownMembers()
        /// Whether it has no line with a URL.
        package var isEmpty: Bool
    }

    /// Adds a list.
    ///
    /// * `name`: what it is called in messages.
    /// * `isSpooled`: a copy of standard input or a pipe, without neighbouring files.
    /// * `warn`: called with what is probably not meant.
    /// - Throws: as ``URLList/init(path:format:most:origin:)`` and ``ListImport/write(into:stem:warn:)``, with the name of the list.
    package func add(
        _ path: String, name: String, isSpooled: Bool = false, warn: (String) -> Void = { _ in }
    ) throws(PrefetchError) -> Part {
        do throws(PrefetchError) {
            try output.beginPart()
            guard let found = try ListImport(path: path, name: name, isSpooled: isSpooled, options: options) else {
                let list = try URLList(path: path, format: options.format, origin: (name, nil))
                var bytes = try InputBytes(path: path)
                var isFirst = true
                while case var piece = try bytes.next(), !piece.isEmpty {
                    if isFirst, piece.starts(with: [0xEF, 0xBB, 0xBF]) { piece = piece.dropFirst(3) }
                    isFirst = false
                    try output.write(piece)
                }
                return Part(unknownMembers: list.unknownMembers, isEmpty: list.total == 0)
            }
            let header = try found.header()
            let first = output.entries
            try found.write(to: output, warn)
            return Part(header: header, isEmpty: output.entries == first)
        } catch {
            var error = error
            if !error.message.contains(name) { error.message = "\(name): \(error.message)" }
            throw error
        }
    }

    /// Ends the list, and returns its path.
    /// * `stem`: the beginning of its name, and so of batch ids.
    package func finish(stem: String) throws(PrefetchError) -> String { try output.publish(stem: stem) }
}
