internal import Queue
package import WebImage

extension RequestSettings {
    /// Applies the values that are set.
    /// * `maxBytes`: the largest image the worker accepts.
    package func apply(to downloads: inout ImageDownloader.Configuration, maxBytes: Int) {
        let all = bounded
        if let contact = all.contact {
            downloads.setValue(WebImage.userAgent(contact: contact), forHTTPHeaderField: "User-Agent")
        }
        for header in (all.headers ?? []).compactMap(Self.header) {
            downloads.setValue(header.value.isEmpty ? nil : header.value, forHTTPHeaderField: header.name)
        }
        func set<Value>(_ path: WritableKeyPath<ImageDownloader.Configuration, Value>, _ value: Value?) {
            if let value { downloads[keyPath: path] = value }
        }
        set(\.connectTimeout, all.connectTimeout)
        set(\.downloadTimeout, all.timeout)
        if let maxTime = all.maxTime {
            downloads.maxTotalTime = maxTime > 0 ? maxTime : nil
            downloads.maxSlowTime = nil
        }
        set(\.maxAttempts, all.tries)
        downloads.maxBodyBytes = min(all.maxSize ?? downloads.maxBodyBytes, maxBytes)
        if let limit = all.maxPerHost {
            downloads.maxConnectionsPerHost = limit > 0 ? limit : nil
            downloads.limitsOpenedAddresses = true
        }
        if let rate = all.ratePerHost { downloads.hosts.requestsPerSecond = rate }
        set(\.asksRobots, all.asksRobots)
        set(\.respectsRobotsTag, all.respectsRobotsTag)
        set(\.ownHosts, all.ownHosts)
    }
}
