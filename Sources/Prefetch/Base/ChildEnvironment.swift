internal import CLinux
internal import Glibc
internal import ObjectStore

/// What children get of the environment: all but the secrets in it, which none of them needs.
enum ChildEnvironment {
    /// A token of the Hugging Face hub.
    static let hubToken = "HF_TOKEN"
    private static let secrets = [hubToken] + S3Settings.secretVariables

    /// * `body`: gets what execve(2) wants; nil without memory.
    static func withVariables<Result>(
        _ body: (UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?) -> Result
    ) -> Result {
        let copies = secrets.map { strdup($0) }
        defer { for copy in copies { free(copy) } }
        let variables = clinux_environment_without(copies.map { UnsafePointer($0) } + [nil])
        defer { free(variables) }
        return body(variables)
    }
}
