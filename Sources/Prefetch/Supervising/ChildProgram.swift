internal import Glibc

/// A program to start as a child, in its own process group, with the environment of this process but for its
/// secrets.
struct ChildProgram: Sendable {
    /// Path of the file; PATH is not searched.
    var path: String
    var arguments: [String]
    /// Its stdin; -1 is /dev/null.
    var input: Int32 = -1
    var output: Int32 = 2
    var errors: Int32 = 2
    /// A descriptor it inherits under the same number; -1 is none.
    var keeping: Int32 = -1
    /// Another one.
    var keepingToo: Int32 = -1
    /// Its working directory, an open folder in which new files are private to this user; -1 is that of this process.
    var folder: Int32 = -1
    /// Sent by the kernel when this process ends for any reason.
    var deathSignal: Int32 = SIGKILL

    /// Quoted for a shell.
    var commandLine: String { ([path] + arguments).map(Self.quoted).joined(separator: " ") }

    private static func quoted(_ word: String) -> String {
        let isPlain = word.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "+")...UInt8(ascii: ":"), UInt8(ascii: "="), UInt8(ascii: "@"), UInt8(ascii: "_"),
                UInt8(ascii: "%"):
                true
            default: false
            }
        }
        if isPlain && !word.isEmpty { return word }
        return "'" + word.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
    }
}
