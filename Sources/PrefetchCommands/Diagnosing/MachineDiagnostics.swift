internal import FoundationEssentials
internal import Glibc
internal import Prefetch
internal import Redis
internal import WebImage

/// Checks this machine: versions, certificates, descriptors, connection tracking, names, programs, and environment variables.
enum MachineDiagnostics {
    static func findings() -> [Finding] {
        [
            Finding(.ok, "prefetch", "\(PrefetchVersion) on \(system)"),
            Finding(.ok, "libraries", libraries), formats(), sandbox(),
            authorities(TrustedAuthorities.file ?? TransportFacts.authorities),
            descriptors(),
            tracking(), names(), programs(),
        ].compactMap(\.self) + environment(ProcessInfo.processInfo.environment)
    }

    private static var system: String {
        var name = utsname()
        guard uname(&name) == 0 else { return "Linux" }
        func text<Value>(_ value: Value) -> String {
            withUnsafeBytes(of: value) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        }
        return "Linux \(text(name.release)) \(text(name.machine)), \(Wording.count(Processors.count, "core"))"
    }

    /// Names and versions, without the many that libcurl includes.
    private static var libraries: String {
        let curl = TransportFacts.versions.split(separator: " ").prefix(2).joined(separator: " ")
        return "\(curl), \(RedisLibrary.version), \(PatternLibrary.version), \(CodecLibraries.versions)"
    }

    /// The formats whose libraries are loaded when they are needed.
    private static func formats() -> Finding {
        let missing = CodecLibraries.optional.filter { !$0.isAvailable }
        let text = CodecLibraries.optional.map(\.description).joined(separator: ", ")
        guard !missing.isEmpty else { return Finding(.ok, "formats", text) }
        let names = missing.map { $0.format.rawValue.uppercased() }.joined(separator: " and ")
        return Finding(
            .warn, "formats", "\(text): \(names) images end as unsupported",
            remedy: "apt-get install -y libwebp7, and libavif15 or libavif16; or --unverifiable keep")
    }

    /// What holds the processes that decode.
    private static func sandbox() -> Finding {
        guard let sandbox = CodecSandbox.shared else {
            return Finding(
                .warn, "sandbox", "\(CodecSandbox.program) is not there: images are decoded by the workers themselves",
                remedy: "install it there: scripts/install and the packages do")
        }
        switch sandbox.condition() {
        case .useless(let reason, let remedy):
            return Finding(
                .warn, "sandbox", "\(reason): images are decoded by the workers themselves", remedy: remedy)
        case .holds(let layers, let missing) where missing.isEmpty: return Finding(.ok, "sandbox", "\(layers)")
        case .holds(let layers, let missing): return Finding(.ok, "sandbox", "\(layers); \(missing)")
        }
    }

    /// * `file`: from libcurl.
    static func authorities(_ file: String?) -> Finding {
        guard let file else {
            return Finding(.ok, "authorities", "as libcurl was built; --ca-file names a file of them")
        }
        var status = stat()
        guard stat(file, &status) == 0, access(file, R_OK) == 0, status.st_size > 0 else {
            return Finding(
                .fail, "authorities", "\(file) is not there, or cannot be read: every https URL would end as tls",
                remedy: "apt-get install -y ca-certificates, or name another file: --ca-file")
        }
        return Finding(.ok, "authorities", "\(file), \(Wording.bytes(Int(status.st_size)))")
    }

    /// A worker needs several per transfer; the hard limit is the maximum.
    private static func descriptors() -> Finding {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        let hard = limit.rlim_max == .max ? Int.max : Int(clamping: limit.rlim_max)
        let text = hard == .max ? "as many as wanted" : "\(Wording.count(hard)) for each process"
        return hard < 1_024
            ? Finding(
                .fail, "descriptors", text,
                remedy: "ulimit -Hn 65536, or LimitNOFILE=65536 in the unit: a worker needs up to 6 per transfer")
            : Finding(.ok, "descriptors", text)
    }

    /// While the table of tracked connections is full, the kernel drops the packets of new connections and queries without an error. An
    /// entry stays for two minutes after its connection has ended (nf_conntrack_tcp_timeout_time_wait).
    /// * `folder`: of the table's figures.
    /// Nil if no table can be seen.
    static func tracking(_ folder: String = "/proc/sys/net/netfilter") -> Finding? {
        func figure(_ name: String) -> Int? {
            let text = try? String(contentsOfFile: "\(folder)/nf_conntrack_\(name)", encoding: .utf8)
            return text.flatMap { Int($0.filter(\.isNumber)) }
        }
        guard let count = figure("count"), let most = figure("max"), most > 0 else { return nil }
        let text = "connection tracking has \(Wording.count(count)) of \(Wording.count(most)) entries"
        guard count > most / 10 * 8 else { return Finding(.ok, "tracking", text) }
        return Finding(
            .warn, "tracking", "\(text): when it is full, packets are dropped, and URLs end as timeout or dns",
            remedy: "sysctl -w net.netfilter.nf_conntrack_max=\(4 * most)")
    }

    private static func names() -> Finding {
        let text = (try? String(contentsOfFile: "/etc/resolv.conf", encoding: .utf8)) ?? ""
        let servers = text.split(whereSeparator: \.isNewline).filter { $0.hasPrefix("nameserver ") }.map {
            String($0.dropFirst("nameserver ".count))
        }
        return servers.isEmpty
            ? Finding(
                .warn, "names", "/etc/resolv.conf names no server: only addresses and /etc/hosts can be reached",
                remedy: "add a resolver, unless all URLs are on this machine")
            : Finding(.ok, "names", "resolvers: \(servers.joined(separator: ", "))")
    }

    private static func programs() -> Finding {
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        return RedisProgram.path(in: path).map { Finding(.ok, "programs", "\($0), for run") }
            ?? Finding(
                .warn, "programs", "no redis-server in PATH: run needs one",
                remedy: "apt-get install -y redis-server; submit and workers use a Redis elsewhere: --redis URL")
    }

    /// Variables that are set but may not have the intended effect.
    static func environment(_ environment: [String: String]) -> [Finding] {
        let proxies = ["http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"].filter {
            environment[$0]?.isEmpty == false
        }
        guard !proxies.isEmpty else { return [] }
        return [
            Finding(
                .warn, "proxy", "\(proxies.joined(separator: ", ")) is set and not used", remedy: "--proxy env uses it")
        ]
    }
}
