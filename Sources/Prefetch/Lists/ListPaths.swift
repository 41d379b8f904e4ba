internal import Glibc

/// What the arguments of a command name as its list: files, folders of lists and patterns, in their order.
package enum ListPaths {
    /// The files. A folder stands for the files in it, and a pattern that no file is called for those that match, in the order of the bytes of
    /// their names; hidden ones are left out.
    /// - Throws: `notFound` if nothing matches a pattern or a folder has no files; `unreadableList` if a folder cannot be read.
    package static func files(_ words: [String]) throws(PrefetchError) -> [String] {
        var files: [String] = []
        for word in words {
            if word == "-" {
                files.append(word)
            } else if let status = PathText.status(word) {
                files += status.st_mode & S_IFMT == S_IFDIR ? try self.files(in: word) : [word]
            } else {
                files += try matches(of: word)
            }
        }
        return files
    }

    private static func files(in folder: String) throws(PrefetchError) -> [String] {
        guard let stream = PathText.withBytes(folder, { opendir($0) }) else {
            throw PrefetchError(
                .unreadableList,
                "cannot read the folder \(PathText.shown(folder)): \(String(cString: strerror(errno)))",
                hint: "give a folder of lists that this user may read")
        }
        defer { closedir(stream) }
        var names: [[UInt8]] = []
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
            if name.first != UInt8(ascii: ".") { names.append(name) }
        }
        let place = folder.hasSuffix("/") ? folder : folder + "/"
        let files = names.sorted { $0.lexicographicallyPrecedes($1) }.map { place + PathText.text($0) }.filter {
            PathText.status($0).map { $0.st_mode & S_IFMT == S_IFREG } ?? false
        }
        guard !files.isEmpty else {
            throw PrefetchError(
                .notFound, "the folder \(PathText.shown(folder)) has no files",
                hint: "a folder stands for the lists in it; folders in it are not searched")
        }
        return files
    }

    /// A word that is not a pattern, or is an address, stays: opening it says what is wrong.
    private static func matches(of word: String) throws(PrefetchError) -> [String] {
        guard word.utf8.contains(where: { "*?[".utf8.contains($0) }), !word.contains("://") else { return [word] }
        var found = glob_t()
        defer { globfree(&found) }
        let flags = GLOB_NOSORT
        guard PathText.withBytes(word, { glob($0, flags, nil, &found) }) == 0 else {
            throw PrefetchError(
                .notFound, "no file matches \(PathText.shown(word))", hint: "a pattern has *, ? or [ ]; see: ls")
        }
        let paths = (0..<Int(found.gl_pathc)).compactMap { found.gl_pathv[$0] }.map {
            Array(UnsafeRawBufferPointer(start: $0, count: strlen($0)))
        }
        return try files(paths.sorted { $0.lexicographicallyPrecedes($1) }.map(PathText.text))
    }
}
