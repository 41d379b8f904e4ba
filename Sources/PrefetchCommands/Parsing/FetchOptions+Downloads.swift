internal import FoundationEssentials
internal import Prefetch
internal import WebImage

extension FetchOptions {
    /// The downloader these options ask for.
    /// - Throws: `configuration` with the option that is wrong.
    func downloads(_ hosts: HostLimitOption) throws(PrefetchError) -> ImageDownloader.Configuration {
        let secrets = try secrets()
        var downloads = ImageDownloader.Configuration()
        downloads.maxConcurrentDownloads = maxConcurrentDownloads
        downloads.maxParkedDownloads = min(100_000, max(256, 8 * maxConcurrentDownloads))
        let maxPerHost = hosts.maxPerHost ?? HostLimitOption.usual
        downloads.maxConnectionsPerHost = maxPerHost > 0 ? maxPerHost : nil
        downloads.limitsOpenedAddresses = hosts.maxPerHost != nil
        downloads.hosts = politeness.policy
        downloads.asksRobots = politeness.robots
        downloads.respectsRobotsTag = politeness.respectsRobotsTag
        downloads.limitRate = politeness.limitRate?.bytes
        downloads.connectTimeout = connectTimeout.seconds
        downloads.downloadTimeout = timeout.seconds
        if let maxTime {
            downloads.maxTotalTime = maxTime.seconds > 0 ? maxTime.seconds : nil
            downloads.maxSlowTime = nil
        }
        downloads.maxAttempts = tries
        downloads.maxRedirects = maxRedirects
        downloads.maxBodyBytes = maxSize.bytes
        downloads.connectTo = connectTo
        downloads.resolve = resolve
        downloads.caFile = caFile
        downloads.addressPolicy = try addressPolicy()
        if let contact {
            downloads.setValue(WebImage.userAgent(contact: contact), forHTTPHeaderField: "User-Agent")
        }
        if let userAgent { downloads.setValue(userAgent, forHTTPHeaderField: "User-Agent") }
        for header in secrets.headers {
            let parts = header.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            let value = parts[1].drop { $0 == " " }
            downloads.setValue(value.isEmpty ? nil : String(value), forHTTPHeaderField: String(parts[0]))
        }
        try requests.apply(to: &downloads, secrets)
        let environment = ProcessInfo.processInfo.environment
        func variable(_ name: String) -> String? {
            let value = environment[name] ?? environment[name.uppercased()]
            return value.flatMap { $0.isEmpty ? nil : $0 }
        }
        let inherited = variable("https_proxy") ?? variable("http_proxy") ?? variable("all_proxy")
        switch secrets.proxy {
        case "env": downloads.proxy = inherited
        case nil:
            if inherited != nil { Console.note("note: a proxy in the environment is not used; --proxy env uses it") }
        case let proxy?: downloads.proxy = proxy
        }
        do throws(WebImageError) { try downloads.validate() } catch {
            throw PrefetchError(.configuration, error.message, hint: "see --help")
        }
        return downloads
    }
}
