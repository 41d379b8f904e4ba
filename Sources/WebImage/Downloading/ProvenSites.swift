/// Sites (scheme, host, port) that have completed a body. Three rules trust them more: a URL that was too slow is retried there
/// (`DownloadLoop.mayTryAgain`), one refused certificate does not fail all of their URLs (``UntrustedSites``), and a probe of such a host
/// is no try of the URLs that wait for it (``HostSchedule``). Used only on the downloader's thread.
final class ProvenSites {
    private var sites: Set<ByteText> = []
    /// Consecutive bodies often come from one site.
    private var last: ByteText = ""
    /// Beyond this number all are dropped: a site is trusted again with its next body.
    private static let most = 16_384

    func contains(_ site: String) -> Bool {
        let site = ByteText(site)
        return site == last || sites.contains(site)
    }

    func insert(_ site: String) {
        let site = ByteText(site)
        guard site != last else { return }
        last = site
        guard !sites.contains(site) else { return }
        if sites.count >= Self.most { sites.removeAll(keepingCapacity: true) }
        sites.insert(site)
    }
}
