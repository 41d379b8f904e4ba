internal import Redis
internal import WebImage

extension BatchFollowing {
    /// The URLs of some indices, in ascending order.
    func urls(of settled: [SettledURL], in status: BatchStatus) async throws(PrefetchError) -> [String] {
        guard !settled.isEmpty else { return [] }
        if case .notLooked = source { source = try await lookForURLs(of: status) }
        var urls: [String] = []
        urls.reserveCapacity(settled.count)
        switch source {
        case .given(let given):
            for item in settled where given.indices.contains(item.index) { urls.append(given[item.index]) }
        case .list(let cursor):
            for item in settled { urls.append(try cursor.entry(at: item.index).url) }
        case .lists(let lists): urls = try await listedURLs(of: settled, lists, in: status)
        case .packed(let packed):
            for item in settled { packed[item.index].map { urls.append($0) } }
        case .none(let reason): urls = try await detailedURLs(of: settled, in: status, otherwise: reason)
        case .notLooked: break
        }
        guard urls.count == settled.count else {
            throw PrefetchError(
                .software, "\(status.id) has more URLs than its list", hint: "look at it: prefetch-coord fsck")
        }
        return urls
    }

    private func lookForURLs(of status: BatchStatus) async throws(PrefetchError) -> Source {
        do throws(PrefetchError) {
            if status.hasLists { return .lists(try SegmentedList(listPath, of: status.id, try await lists(status))) }
            return status.retryOf == nil ? try listSource(status) : try await retrySource(status)
        } catch {
            switch error.kind {
            case .unreadableList,
                .notFound where listPath == nil:
                return .none(error)
            default: throw error
            }
        }
    }

    private func listSource(_ status: BatchStatus) throws(PrefetchError) -> Source {
        let path = listPath ?? status.listPath
        let cursor = try ListCursor(path: path)
        guard cursor.hash == status.listHash else {
            throw PrefetchError(
                .unreadableList, "\(path) is not the list of \(status.id)",
                hint: "give the file it was submitted from: --list FILE")
        }
        return .list(cursor)
    }

    private func lists(_ status: BatchStatus) async throws(PrefetchError) -> [ListSegment] {
        do throws(RedisError) { return try await queue.lists.segments(of: status.id) } catch {
            throw PrefetchError(error)
        }
    }

    /// Of an open batch, whose lists may have become more. Those of a list that cannot be read are in the details, or nowhere.
    private func listedURLs(
        of settled: [SettledURL], _ lists: SegmentedList, in status: BatchStatus
    ) async throws(PrefetchError) -> [String] {
        if let last = settled.last, last.index >= lists.end { lists.extend(try await self.lists(status)) }
        var urls: [String] = []
        for item in settled {
            switch lists.url(at: item.index) {
            case .success(let url): urls.append(url)
            case .failure(let reason):
                urls += try await detailedURLs(of: [item], in: status, otherwise: reason)
            }
        }
        return urls
    }

    /// The entries of a retry are lines of another batch that were skipped, and perhaps of a retry again: they are kept in memory.
    private func retrySource(_ status: BatchStatus) async throws(PrefetchError) -> Source {
        let entries = try await BatchEntries(of: status, queue: queue, listPath: listPath)
        var packed = PackedURLs()
        try await entries.forEach { entry async throws(PrefetchError) in
            packed.append(entry.url)
            return true
        }
        return .packed(packed)
    }

    /// Without the list, Redis knows the URLs that were skipped, as far as it keeps their details.
    private func detailedURLs(
        of settled: [SettledURL], in status: BatchStatus, otherwise reason: PrefetchError
    ) async throws(PrefetchError) -> [String] {
        let indices = settled.filter(\.outcome.isSkipped).map(\.index)
        let details: [Int: FailureDetail]
        do throws(RedisError) { details = try await queue.results.details(of: status.id, indices: indices) } catch {
            throw PrefetchError(error)
        }
        var urls: [String] = []
        for item in settled {
            guard let detail = details[item.index] else {
                throw PrefetchError(
                    .unreadableList, "which URLs ended is only in the list: \(reason.message)",
                    hint: "give the file \(status.id) was submitted from: --list FILE")
            }
            urls.append(detail.url)
        }
        return urls
    }
}
