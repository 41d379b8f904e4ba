internal import Glibc

/// A directory of its own for one test, removed with everything in it when the last reference goes.
package final class TemporaryDirectory: Sendable {
    /// Absolute, without a slash at the end; short enough for Unix sockets in it.
    package let path: String

    /// - Parameter parent: on another file system than `/tmp` where a test needs that.
    package init(in parent: String = "/tmp") {
        var template = Array("\(parent)/pf-XXXXXX".utf8CString)
        let made = template.withUnsafeMutableBufferPointer { mkdtemp($0.baseAddress!) != nil }
        precondition(made, "cannot make a directory in \(parent): \(String(cString: strerror(errno)))")
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit { Self.remove(path) }

    /// Where the programs that tests start keep the state of runs, in place of this user's own; removed when the test run exits.
    package static let stateHome: TemporaryDirectory = {
        atexit { TemporaryDirectory.remove(TemporaryDirectory.stateHome.path) }
        return TemporaryDirectory()
    }()

    /// What runs of such programs keep of a cache.
    package static func runState(of cache: String) -> String {
        let id = readFile(cache + "/.prefetch/id").map { String(decoding: $0.dropLast(), as: UTF8.self) } ?? "none"
        return "\(stateHome.path)/prefetch/\(id)"
    }

    /// A path inside.
    package func path(_ name: String) -> String { "\(path)/\(name)" }

    /// Every file and directory below, relative, sorted; directories end with a slash.
    package func contents() -> [String] { Self.contents(path) }

    /// Every file and directory below a path, as those of a directory of this kind.
    package static func contents(_ path: String) -> [String] {
        var found: [String] = []
        list(path, prefix: "", into: &found)
        return found.sorted()
    }

    /// Writes a file; `name` may have existing directories in front.
    package func write(_ bytes: [UInt8], to name: String) {
        guard let file = fopen(path(name), "w") else { preconditionFailure("cannot write \(path(name))") }
        fwrite(bytes, 1, bytes.count, file)
        fclose(file)
    }

    /// The bytes of a file, nil where there is none.
    package func read(_ name: String) -> [UInt8]? { readFile(path(name)) }

    private static func entries(_ path: String) -> [(name: String, isDirectory: Bool)] {
        guard let handle = opendir(path) else { return [] }
        defer { closedir(handle) }
        var found: [(String, Bool)] = []
        while let entry = readdir(handle) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            guard name != ".", name != ".." else { continue }
            var status = stat()
            guard lstat("\(path)/\(name)", &status) == 0 else { continue }
            found.append((name, status.st_mode & S_IFMT == S_IFDIR))
        }
        return found
    }

    private static func list(_ path: String, prefix: String, into found: inout [String]) {
        for (name, isDirectory) in entries(path) {
            found.append(prefix + name + (isDirectory ? "/" : ""))
            if isDirectory { list("\(path)/\(name)", prefix: "\(prefix)\(name)/", into: &found) }
        }
    }

    package static func remove(_ path: String) {
        // A test may have taken the write permission away.
        chmod(path, 0o700)
        for (name, isDirectory) in entries(path) {
            if isDirectory { remove("\(path)/\(name)") } else { unlink("\(path)/\(name)") }
        }
        rmdir(path)
    }
}

/// The bytes of a file, nil where it cannot be opened.
package func readFile(_ path: String) -> [UInt8]? {
    guard let file = fopen(path, "r") else { return nil }
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65536)
    while case let count = fread(&buffer, 1, buffer.count, file), count > 0 { bytes += buffer[..<count] }
    return bytes
}
