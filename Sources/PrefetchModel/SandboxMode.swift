/// Whether images are decoded in child processes that have no files and no network.
public enum SandboxMode: String, Sendable, CaseIterable {
    /// Wherever the program of these processes is there, and the kernel can hold it. The default.
    case auto
    /// It is an error if that is not possible.
    case on
    /// In the process itself.
    case off
}
