internal import FoundationEssentials
internal import Glibc
internal import Threading
package import WebImage

/// Downloads lists by their addresses, each once, and asks the next time whether it has changed. Rules of networks, redirects, tries and TLS
/// are those of images.
package final class ListFetcher: ListOpening {
    /// The Hugging Face hub.
    package struct Hub: Sendable {
        /// Without a slash at its end.
        let address: String
        /// Sent to no other site.
        let token: String?

        /// `HF_ENDPOINT` and `HF_TOKEN`, as the hub's own tools read them.
        package init(variable: (String) -> String?) {
            func known(_ name: String) -> String? { variable(name).flatMap { $0.isEmpty ? nil : $0 } }
            let given = known("HF_ENDPOINT") ?? "https://huggingface.co"
            address = given.hasSuffix("/") ? String(given.dropLast()) : given
            token = known(ChildEnvironment.hubToken)
        }
    }

    /// What is said while a list is fetched.
    package enum Notice: Sendable {
        /// Bytes; 0 of a length that is not known.
        case fetching(String, received: Int, expected: Int)
        case fetched(String, bytes: Int)
        case unchanged(String)
        /// Nobody can say whether the file that is there has changed: it is read.
        case unasked(String, reason: String)
        /// Nothing but the end of a connection was the end of its bytes.
        case unmeasured(String)
    }

    private struct Fetch {
        let latch = BlockingLatch()
        var result: Result<String, PrefetchError>?
    }

    private let downloader: ImageDownloader
    private let hub: Hub
    private let lists: StateFolder
    private let notice: @Sendable (Notice) -> Void
    private let fetches = Locked<[ByteText: Fetch]>([:])

    /// * `downloads`: settings of requests; what is about images in them is replaced.
    /// * `lists`: where they are kept.
    /// * `notice`: called on any thread.
    /// - Throws: `configuration`; `unreadableList` without memory or descriptors.
    package init(
        _ downloads: ImageDownloader.Configuration, in lists: StateFolder, hub: Hub,
        notice: @escaping @Sendable (Notice) -> Void
    ) throws(PrefetchError) {
        (self.hub, self.lists, self.notice) = (hub, lists, notice)
        var downloads = downloads
        downloads.setValue("*/*", forHTTPHeaderField: "Accept")
        downloads.maxConcurrentDownloads = 2
        downloads.maxBodyBytes = Plausible.largestImage
        downloads.maxSlowTime = nil
        downloads.urlFilters = []
        downloads.minimumProgressInterval = 0.01
        do throws(WebImageError) { downloader = try ImageDownloader(configuration: downloads) } catch {
            throw PrefetchError(
                error.code == .invalidConfiguration ? .configuration : .unreadableList, error.message)
        }
    }

    /// Whether a word of a command line is an address.
    package static func isAddress(_ word: String) -> Bool { ListAddress.isAddress(word) }

    package func isAddress(_ word: String) -> Bool { ListAddress.isAddress(word) }

    // MARK: Which

    /// The words with an address of a file for each folder and pattern of the hub, in the order of the bytes of their names.
    /// - Throws: `notFound` where there is nothing; `configuration`, `unreadableList`.
    package func files(_ words: [String]) async throws(PrefetchError) -> [String] {
        var files: [String] = []
        for word in words {
            guard isAddress(word), case .hub(let path) = try ListAddress(word) else {
                files.append(word)
                continue
            }
            if path.isPattern {
                files += try await HubFolder(path.parent, hub, self).files(matching: path)
            } else if path.isFile {
                files.append(word)
            } else {
                files += try await HubFolder(path, hub, self).files(matching: nil)
            }
        }
        return files
    }

    /// Bytes of what the hub says of itself.
    /// - Returns: the body, and the address of the next page; nil if there is nothing of this address.
    func page(_ url: String) async throws(PrefetchError) -> (bytes: [UInt8], next: String?)? {
        let next = Locked<String?>(nil)
        let profile: RequestProfile
        do throws(WebImageError) {
            profile = try await downloader.profile { configuration in
                configuration.responseModifier = { response in
                    next.withLock { $0 = response.value(forHTTPHeaderField: "Link").flatMap(Self.next) }
                    return response
                }
            }
            let answer = try await downloader.download(
                url, options: [.unasked, .uninspected], headers: credentials(url), profile: profile, permit: nil)
            let bytes = try answer.body.withUnsafeBytes { Array($0) }
            return (bytes, next.withLock { $0 })
        } catch {
            if error.httpStatus == 404 { return nil }
            throw failure(error, url, asked: url)
        }
    }

    /// The target of `rel="next"` (RFC 8288).
    private static func next(_ link: String) -> String? {
        for part in link.split(separator: ",") where part.contains("rel=\"next\"") {
            guard let open = part.firstIndex(of: "<"), let end = part.firstIndex(of: ">"), open < end else { continue }
            return String(part[part.index(after: open)..<end])
        }
        return nil
    }

    // MARK: Fetching

    package func begin(_ address: String) {
        let isNew = fetches.withLock { fetches in
            guard fetches[ByteText(address)] == nil else { return false }
            fetches[ByteText(address)] = Fetch()
            return true
        }
        guard isNew else { return }
        Task {
            let result: Result<String, PrefetchError>
            do throws(PrefetchError) { result = .success(try await fetch(address)) } catch { result = .failure(error) }
            let latch = fetches.withLock { fetches in
                fetches[ByteText(address)]?.result = result
                return fetches[ByteText(address)]?.latch
            }
            latch?.open()
        }
    }

    package func file(of address: String, waitLimit: Int32) throws(PrefetchError) -> String? {
        begin(address)
        let known = fetches.withLock { $0[ByteText(address)] }
        if known?.result == nil, waitLimit != 0 {
            if waitLimit < 0 { known?.latch.wait() } else { poll(nil, 0, waitLimit) }
        }
        return try fetches.withLock { $0[ByteText(address)] }?.result?.get()
    }

    private func fetch(_ address: String) async throws(PrefetchError) -> String {
        let url: String =
            switch try ListAddress(address) {
            case .web(let url): url
            case .hub(let path): path.file(at: hub.address)
            }
        let fetched = try FetchedLists(in: lists)
        fetched.removeOld()
        let place = try fetched.place(of: url)
        let known = fetched.validators(of: place)
        let files = Locked<[TemporaryFile]>([])
        let image: DownloadedImage
        do throws(WebImageError) {
            let profile = try await downloader.profile { configuration in
                configuration.openTemporaryFile = { () throws(WebImageError) in
                    guard let file = TemporaryFile(in: place.folder),
                        case let copy = fcntl(file.descriptor, F_DUPFD_CLOEXEC, 0), copy >= 0
                    else { throw WebImageError(.localFault, "cannot write \(place.path)", underlyingCode: errno) }
                    files.withLock { $0.append(file) }
                    return copy
                }
            }
            let conditions = known?.conditions ?? []
            image = try await downloader.download(
                url, options: conditions.isEmpty ? [.unasked, .uninspected] : [.unasked, .uninspected, .conditional],
                headers: credentials(url) + conditions, profile: profile, permit: nil,
                progress: { [notice] received, expected in
                    if received > 0 { notice(.fetching(address, received: received, expected: max(0, expected))) }
                })
        } catch {
            guard known != nil, error.isTransient || error.code == .localFault else {
                throw failure(error, address, asked: url)
            }
            notice(.unasked(address, reason: error.message))
            return place.path
        }
        guard image.statusCode != 304 else {
            notice(.unchanged(address))
            return place.path
        }
        if !image.lengthWasAnnounced { notice(.unmeasured(address)) }
        let validators = HTTPValidators(etag: image.eTag, lastModified: image.lastModified)
        try fetched.publish(file(of: image.body, files.withLock { $0 }, place), at: place, validators)
        notice(.fetched(address, bytes: image.body.count))
        return place.path
    }

    /// The file that has the bytes of a body.
    private func file(
        of body: ImageBody, _ files: [TemporaryFile], _ place: FetchedLists.Place
    ) throws(PrefetchError) -> TemporaryFile {
        var own = stat()
        if let descriptor = body.fileDescriptor, fstat(descriptor, &own) == 0 {
            for file in files {
                var status = stat()
                if fstat(file.descriptor, &status) == 0, status.st_ino == own.st_ino { return file }
            }
        }
        guard let file = TemporaryFile(in: place.folder) else { throw .file("write", place.path) }
        var code: Int32 = 0
        try? body.withUnsafeBytes { code = OpenFile.write(Array($0), to: file.descriptor) }
        guard code == 0 else {
            errno = code
            throw .file("write", place.path)
        }
        return file
    }

    // MARK: The hub

    /// The token, for requests to the hub; the downloader sends it to no site that it redirects to.
    private func credentials(_ url: String) -> [HTTPHeader] {
        guard let token = hub.token, url.utf8.starts(with: "\(hub.address)/".utf8) else { return [] }
        return [HTTPHeader("Authorization", "Bearer \(token)")]
    }

    /// * `address`: as it was given; `url`: what was requested.
    private func failure(_ error: WebImageError, _ address: String, asked url: String) -> PrefetchError {
        let name = URLRedaction.url(address)
        let isOfHub = url.utf8.starts(with: "\(hub.address)/".utf8)
        switch error.httpStatus {
        case let status? where isOfHub && [401, 403].contains(status):
            return PrefetchError(
                .unreadableList, "the hub answers \(status) for \(name)",
                hint: hub.token == nil
                    ? "set HF_TOKEN to a token that may read it, or check the name"
                    : "HF_TOKEN may not read it: accept its conditions on its page, or use another token")
        case 404, 410:
            return PrefetchError(
                .notFound, "there is no list at \(name): its server answers \(error.httpStatus ?? 0)",
                hint: "check the address in a browser")
        default: break
        }
        if let refused = error.refusedAddress {
            return PrefetchError(
                .unreadableList, "cannot fetch \(name): \(error.message)",
                hint: "if that is your own network, allow it: PREFETCH_ALLOW_NET=\(refused)")
        }
        if error.code == .secureConnectionFailed {
            return PrefetchError(
                .unreadableList, "cannot fetch \(name): \(error.message)",
                hint: "if its authority is your own, name its certificate: CURL_CA_BUNDLE=FILE, or run --ca-file FILE")
        }
        return PrefetchError(
            error.isTransient ? .stopped : .unreadableList, "cannot fetch \(name): \(error.message)",
            hint: error.isTransient ? "run it again" : "fetch it with another program, and give the file")
    }
}
