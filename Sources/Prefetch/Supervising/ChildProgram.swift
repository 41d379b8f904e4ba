internal import Glibc

/// A program to start as a child, in a process group of its own, with the environment of this process.
struct ChildProgram: Sendable {
    /// Path of the file; PATH is not searched.
    var path: String
    var arguments: [String]
    /// Its stdin; -1 is /dev/null.
    var input: Int32 = -1
    /// Its stdout.
    var output: Int32 = 2
    /// Its stderr.
    var errors: Int32 = 2
    /// A descriptor it inherits under its own number; -1 is none.
    var keeping: Int32 = -1
    /// An open folder it works in, where the files it makes are for this user alone; -1 is the folder of this process.
    var folder: Int32 = -1
    /// What the kernel sends it when this process ends, however that happens.
    var deathSignal: Int32 = SIGKILL

    /// As a person would type it into a shell.
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
