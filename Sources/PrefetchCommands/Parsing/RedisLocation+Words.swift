internal import Redis

extension RedisLocation {
    /// What a command needs to find the same queue and cache, as it has to be typed, with a blank in front; without passwords.
    var words: String {
        var words = ""
        if let redis, let configuration = try? configuration(redis) {
            words += " --redis \(Shell.quoted(configuration.redactedURL))"
        }
        if let cache { words += " --cache \(Shell.quoted(Shell.path(cache)))" }
        return words + (queue == "default" ? "" : " --queue \(queue)")
    }
}
