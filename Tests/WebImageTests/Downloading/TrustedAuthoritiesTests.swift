internal import Glibc
import TestSupport
import Testing

@testable import WebImage

@Suite("Trusted authorities", .timeLimit(.minutes(5)))
struct TrustedAuthoritiesTests {
    @Test("A named file counts before the library's, that before a distribution's, and certifi is the last")
    func order() {
        let folder = TemporaryDirectory()
        var environment: [String: String] = [:]
        func find() -> String? {
            TrustedAuthorities.file(
                TrustedAuthorities.variables, environment: { environment[$0] }, builtIn: folder.path("built-in"),
                places: ["fedora", "suse"].map(folder.path), folder: folder.path("bin/"))
        }
        #expect(find() == nil)
        for path in [
            "bin", "lib", "lib/python3.12", "lib/python3.12/site-packages", "lib/python3.12/site-packages/certifi",
        ] {
            mkdir(folder.path(path), 0o755)
        }
        folder.write([1], to: "lib/python3.12/site-packages/certifi/cacert.pem")
        #expect(find() == folder.path("bin/../lib/python3.12/site-packages/certifi/cacert.pem"))
        folder.write([1], to: "suse")
        #expect(find() == folder.path("suse"))
        folder.write([1], to: "fedora")
        #expect(find() == folder.path("fedora"))
        folder.write([1], to: "built-in")
        #expect(find() == nil)
        // Whoever names one that is not there has to be told.
        environment["SSL_CERT_FILE"] = "/no/such/file"
        #expect(find() == "/no/such/file")
        environment["CURL_CA_BUNDLE"] = "/no/such/bundle"
        #expect(find() == "/no/such/bundle")
        environment = ["CURL_CA_BUNDLE": "", "SSL_CERT_FILE": ""]
        #expect(find() == nil)
    }

    @Test(
        "The environment's file is trusted, unless another one is named",
        .enabled(if: NginxServer.isInstalled, "nginx and openssl are not installed"))
    func environment() async {
        await #expect(processExitsWith: .success) {
            let nginx = try NginxServer()
            unsetenv("CURL_CA_BUNDLE")
            setenv("SSL_CERT_FILE", nginx.certificate, 1)
            let image = try await makeDownloader().download(nginx.url("/"))
            precondition(image.statusCode == 200)
            let other = try NginxServer()
            let failure = await (try makeDownloader { $0.caFile = other.certificate }).failure(nginx.url("/"))
            precondition(failure?.code == .secureConnectionFailed)
        }
    }
}
