internal import Glibc

/// A folder of files named by line numbers: `000007.jpg`, or `00000/000007.jpg`.
package struct NumberedFolder: Sendable {
    package let path: String
    private let names: [Int: String]

    /// - Throws: `notFound` if there is no such folder.
    package init(path: String) throws(PrefetchError) {
        self.path = path
        var names: [Int: String] = [:]
        func note(_ name: String, in folder: String) {
            if let line = Int(name.prefix { $0 != "." }), line > 0 { names[line] = folder + name }
        }
        for (name, isFolder) in try Self.entries(of: path) {
            guard isFolder else {
                note(name, in: "")
                continue
            }
            guard name.utf8.count >= 5, name.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { continue }
            for (file, isFolder) in try Self.entries(of: "\(path)/\(name)") where !isFolder {
                note(file, in: "\(name)/")
            }
        }
        self.names = names
    }

    func name(ofLine line: Int) -> String? { names[line] }

    /// Names of files and folders; symbolic links and other kinds are left out.
    static func entries(of path: String) throws(PrefetchError) -> [(name: String, isFolder: Bool)] {
        guard let stream = opendir(path) else {
            throw PrefetchError(
                .notFound, "cannot read the folder \(path): \(String(cString: strerror(errno)))",
                hint: "name a folder that is there")
        }
        defer { closedir(stream) }
        var found: [(name: String, isFolder: Bool)] = []
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            var status = stat()
            guard name != ".", name != "..", lstat("\(path)/\(name)", &status) == 0 else { continue }
            let kind = status.st_mode & S_IFMT
            if kind == S_IFREG || kind == S_IFDIR { found.append((name, kind == S_IFDIR)) }
        }
        return found.sorted { $0.name < $1.name }
    }
}
