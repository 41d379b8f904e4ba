internal import Glibc
internal import Prefetch

package enum Shell {
    /// This program as it was called, so that printed commands work in the same place.
    package static var program: String {
        quoted(Console.printed?.program ?? CommandLine.arguments.first ?? "prefetch-coord")
    }

    package static func quoted(_ word: String) -> String {
        // Bytes that are none of a character, in the quotes of bash that have escapes.
        if PathText.shown(word) != word {
            return "$'" + PathText.shown(word.replacing("\\", with: "\\\\").replacing("'", with: "\\'")) + "'"
        }
        let plain = word.utf8.allSatisfy { byte in
            byte >= 0x80 || (byte | 0x20 >= 0x61 && byte | 0x20 <= 0x7A) || (0x2B...0x3A).contains(byte) || byte == 0x5F
                || byte == 0x3D || byte == 0x40
        }
        return plain && !word.isEmpty ? word : "'" + word.replacing("'", with: "'\\''") + "'"
    }

    /// A path that cannot be mistaken for an option.
    static func path(_ path: String) -> String { path.hasPrefix("-") ? "./" + path : path }
}
