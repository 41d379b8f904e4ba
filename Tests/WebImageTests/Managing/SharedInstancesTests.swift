import Glibc
import TestSupport
import Testing

@testable import WebImage

/// A shared instance belongs to a process, so each test has one of its own.
@Suite("Shared instances", .timeLimit(.minutes(5)))
struct SharedInstancesTests {
    @Test(
        "The shared manager has its cache where the environment says, and its downloader and prefetcher are the shared ones"
    )
    func shared() async {
        await #expect(processExitsWith: .success) {
            let folder = TemporaryDirectory()
            setenv("XDG_CACHE_HOME", folder.path, 1)
            let (manager, again) = (try ImageManager.shared, try ImageManager.shared)
            precondition(manager === again)
            precondition(manager.cache.disk.directory == folder.path("prefetch"))
            precondition(folder.contents().contains("prefetch/v1/"))
            let (downloader, prefetcher) = (try ImageDownloader.shared, try ImagePrefetcher.shared)
            precondition(manager.downloader === downloader)
            precondition(prefetcher.manager as? ImageManager === manager)
        }
    }

    @Test("Where its cache cannot be, the shared manager says so")
    func impossible() async {
        await #expect(processExitsWith: .success) {
            setenv("XDG_CACHE_HOME", "/proc/nowhere", 1)
            let errors = [
                #expect(throws: WebImageError.self) { try ImageManager.shared },
                #expect(throws: WebImageError.self) { try ImageDownloader.shared },
                #expect(throws: WebImageError.self) { try ImagePrefetcher.shared },
            ]
            for error in errors {
                precondition(error?.code == .localFault)
                precondition(error?.message.contains("/proc/nowhere") == true)
            }
        }
    }

    @Test(
        "The default directory is below the cache home, or below the home",
        arguments: [
            (["XDG_CACHE_HOME": "/x", "HOME": "/h"], "/x/prefetch"), (["HOME": "/h"], "/h/.cache/prefetch"),
            // The specification: paths that are not absolute are invalid.
            (["XDG_CACHE_HOME": "x", "HOME": "/h"], "/h/.cache/prefetch"),
            (["XDG_CACHE_HOME": "", "HOME": "/h"], "/h/.cache/prefetch"), (["HOME": "h"], nil), ([:], nil),
        ])
    func directory(environment: [String: String], expected: String?) {
        #expect((try? ImageCache.defaultDirectory { environment[$0] }) == expected)
    }
}
