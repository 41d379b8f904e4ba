internal import Queue
package import WebImage

extension RequestSettings {
    /// Applies the values that are set.
    /// * `maxBytes`: the largest image the worker accepts.
    package func apply(to downloads: inout ImageDownloader.Configuration, maxBytes: Int) {
        if let contact = contact {
            downloads.setValue(WebImage.userAgent(contact: contact), forHTTPHeaderField: "User-Agent")
        }
        for header in (headers ?? []).compactMap(Self.header) {
            downloads.setValue(header.value.isEmpty ? nil : header.value, forHTTPHeaderField: header.name)
        }
        func set<Value>(_ path: WritableKeyPath<ImageDownloader.Configuration, Value>, _ value: Value?) {
            if let value { downloads[keyPath: path] = value }
        }
        set(\.connectTimeout, connectTimeout)
        set(\.downloadTimeout, timeout)
        if let maxTime = maxTime {
            downloads.maxTotalTime = maxTime > 0 ? maxTime : nil
            downloads.maxSlowTime = nil
        }
        set(\.maxTries, tries)
        downloads.maxBodyBytes = min(maxSize ?? downloads.maxBodyBytes, maxBytes)
        if let limit = maxPerHost {
            downloads.maxConnectionsPerHost = limit > 0 ? limit : nil
            downloads.limitsOpenedAddresses = true
        }
        if let rate = ratePerHost { downloads.hosts.requestsPerSecond = rate }
        set(\.asksRobots, asksRobots)
        set(\.respectsRobotsTag, respectsRobotsTag)
        set(\.ownHosts, ownHosts)
        downloads.urlFilters += filters
    }
}
