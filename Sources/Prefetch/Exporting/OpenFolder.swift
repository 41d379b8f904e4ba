internal import CLinux
internal import Glibc

/// The one owner of an open folder.
final class OpenFolder: Sendable {
    let descriptor: Int32

    /// Opens it; nil with `errno`.
    init?(_ path: String) {
        descriptor = clinux_open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
        if descriptor < 0 { return nil }
    }

    deinit { if descriptor >= 0 { close(descriptor) } }
}
