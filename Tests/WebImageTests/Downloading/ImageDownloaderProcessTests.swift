internal import Glibc
import Origin
import Testing

@testable import WebImage

/// What belongs to a whole process is tried in one of its own.
@Suite("ImageDownloader and its process", .timeLimit(.minutes(5)))
struct ImageDownloaderProcessTests {
    @Test("Proxy variables, netrc and SSLKEYLOGFILE are ignored")
    func environment() async {
        await #expect(processExitsWith: .success) {
            let dead = "http://127.0.0.1:1"
            for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"] { setenv(name, dead, 1) }
            setenv("NO_PROXY", "", 1)
            var template = Array("/tmp/downloader-XXXXXX".utf8CString)
            let folder = template.withUnsafeMutableBufferPointer { String(cString: mkdtemp($0.baseAddress!)) }
            setenv("HOME", folder, 1)
            let netrc = try #require(fopen("\(folder)/.netrc", "w"))
            fputs("default login me password secret\n", netrc)
            fclose(netrc)
            setenv("SSLKEYLOGFILE", "\(folder)/keys", 1)
            let server = try OriginServer()
            server.setFallback { _ in OriginResponse(body: [1]) }
            let downloader = try makeDownloader()
            _ = try await downloader.download(server.url("/"))
            if NginxServer.isInstalled {
                let nginx = try NginxServer()
                _ = try await downloader.download(nginx.url("/"), options: .allowInvalidSSLCertificates)
            }
            await downloader.invalidateSessionAndCancel()
            precondition(server.requests.map(\.path) == ["/"])
            precondition(server.requests[0].header("Authorization") == nil)
            precondition(access("\(folder)/keys", F_OK) != 0)
            precondition(getenv("SSLKEYLOGFILE") != nil)
            unlink("\(folder)/.netrc")
            rmdir(folder)
        }
    }

    @Test("No descriptor left is our fault, not the URL's, and passes")
    func noDescriptors() async {
        await #expect(processExitsWith: .success) {
            let server = try OriginServer()
            server.setFallback { _ in OriginResponse(body: [1]) }
            let downloader = try makeDownloader()
            _ = try await downloader.download(server.url("/first"))
            // A second connection is needed, by another host name; everything below the limit is taken.
            var taken: [Int32] = []
            var limit = rlimit(rlim_cur: 128, rlim_max: 128)
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            while true {
                let file = dup(0)
                guard file >= 0 else { break }
                taken.append(file)
            }
            let url = "http://127.0.0.5:\(server.port)/second"
            let error = await downloader.failure(url)
            precondition(error?.code == .localFault, "\(error?.message ?? "no error")")
            precondition(error?.underlyingCode == EMFILE)
            for file in taken { close(file) }
            let after = await downloader.failure(url)
            precondition(after?.code == .cannotConnectToHost, "\(after?.message ?? "no error")")
        }
    }
}
