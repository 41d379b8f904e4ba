public import ArgumentParser
internal import FoundationEssentials
internal import Prefetch
public import WebImage

/// How requests are made and which answers are taken: the less usual part of the fetch options.
struct RequestOptions: ParsableArguments {
    @Option(help: "Bytes a second under which a transfer ends; 0 = no limit.")
    var lowSpeedLimit = 1000

    @Option(help: "How long it has to be slower.")
    var lowSpeedTime = TimeSpan(seconds: 20)

    @Option(help: "Time one try may take, redirects included; none by default.")
    var maxTryTime: TimeSpan?

    @Option(
        help:
            "What is tried again: timeout, dns, connect, truncated, status, and status codes; with commas. (default: all five)"
    )
    var retryOn: String?

    @Option(help: "The longest first pause between tries, which doubles with each; a random part of it is waited.")
    var retryDelay = TimeSpan(seconds: 0.5)

    @Option(help: "The longest Retry-After that is waited for.")
    var maxRetryAfter = TimeSpan(seconds: 60)

    @Flag(help: "Begin large images anew where their transfer broke off.")
    var noResume = false

    @Option(name: .customLong("accept-status"), help: "Status codes that are taken, as 200-299,404.")
    var acceptStatus: String?

    @Option(name: .customLong("accept-type"), help: "Media types that are taken, as image/*; with commas.")
    var acceptType: String?

    @Option(help: "A netrc file with names and passwords by host.", completion: .file())
    var netrc: String?

    @Option(help: "NAME:PASSWORD for the servers, or @FILE that has it.")
    var user: String?

    @Option(help: "A token for the servers, or @FILE that has it.")
    var bearer: String?

    @Option(help: "How names and passwords are told: basic, digest.")
    var auth = Credential.Scheme.basic

    @Option(help: "A host --user or --bearer is for; may be repeated; every host by default.")
    var authHost: [String] = []

    @Option(help: "A file with this client's certificate (PEM).", completion: .file())
    var cert: String?

    @Option(help: "A file with the certificate's key.", completion: .file())
    var key: String?

    @Flag(name: [.customShort("4"), .long], help: "IPv4 addresses alone.")
    var ipv4 = false

    @Flag(name: [.customShort("6"), .long], help: "IPv6 addresses alone.")
    var ipv6 = false

    @Flag(name: .customLong("http1"), help: "No HTTP/2.")
    var http1 = false

    @Option(help: "Which waiting download of a worker is next: fifo, lifo.")
    var downloadOrder = DownloadExecutionOrder.fifo

    @Option(
        help:
            "A header for one host, 'HOST=Name: value', or @FILE with one a line; an empty value removes it; may be repeated."
    )
    var headerRule: [String] = []

    @Option(
        help: "A file for what happens to each transfer and where its time went, one JSON object a line.",
        completion: .file())
    var transferLog: String?

    func validate() throws {
        guard lowSpeedLimit >= 0 else { throw ValidationError("--low-speed-limit is a number from 0 on") }
        if let retryOn { _ = try Self.retried(retryOn) }
        if let acceptStatus { _ = try Self.statusCodes(acceptStatus) }
        guard auth != .bearer else { throw ValidationError("--auth is basic or digest; a token is --bearer") }
        if user != nil && bearer != nil { throw ValidationError("--user and --bearer contradict each other") }
        if !authHost.isEmpty && user == nil && bearer == nil {
            throw ValidationError("--auth-host says whom --user or --bearer is for")
        }
        if key != nil && cert == nil { throw ValidationError("--key is the key of --cert") }
        if ipv4 && ipv6 { throw ValidationError("--ipv4 and --ipv6 contradict each other") }
        for rule in headerRule where HeaderRule(rule) == nil && !rule.hasPrefix("@") {
            throw ValidationError("--header-rule wants 'HOST=Name: value', or @FILE")
        }
    }

    /// `200-299,404`
    private static func statusCodes(_ text: String) throws -> [ClosedRange<Int>] {
        try text.split(separator: ",").map { part in
            let ends = part.split(separator: "-", omittingEmptySubsequences: false).map { Int($0) }
            guard let first = ends.first ?? nil, let last = ends.last ?? nil, ends.count <= 2, first <= last,
                (200...599).contains(first), last <= 599
            else { throw ValidationError("--accept-status is status codes from 200 to 599, as 200-299,404") }
            return first...last
        }
    }

    /// `timeout,dns,403`
    private static func retried(_ text: String) throws -> (errors: Set<RetriedError>, statusCodes: Set<Int>) {
        var (errors, statusCodes): (Set<RetriedError>, Set<Int>) = ([], [])
        for part in text.split(separator: ",") where part != "none" {
            if let error = RetriedError(rawValue: String(part)) {
                errors.insert(error)
            } else if let code = Int(part), (300...599).contains(code) {
                statusCodes.insert(code)
            } else {
                let names = RetriedError.allCases.map(\.rawValue).joined(separator: ", ")
                throw ValidationError("--retry-on is none, or some of \(names) and status codes, not '\(part)'")
            }
        }
        return (errors, statusCodes)
    }

    /// Sets what these options say.
    /// - Throws: `configuration` where a file cannot be read.
    func apply(
        to downloads: inout ImageDownloader.Configuration, _ secrets: RequestSecrets
    ) throws(PrefetchError) {
        downloads.lowSpeedLimit = lowSpeedLimit
        downloads.lowSpeedTime = lowSpeedTime.seconds
        downloads.maxTime = maxTryTime?.seconds
        if let retryOn, let retried = try? Self.retried(retryOn) {
            downloads.retriedErrors = retried.errors
            downloads.retriedStatusCodes = retried.statusCodes
        }
        downloads.retryBaseDelay = retryDelay.seconds
        downloads.retryMaxDelay = max(downloads.retryMaxDelay, retryDelay.seconds)
        downloads.maxRetryAfter = maxRetryAfter.seconds
        if noResume { downloads.resumeFrom = nil }
        downloads.acceptableStatusCodes = acceptStatus.flatMap { try? Self.statusCodes($0) }
        downloads.acceptableContentTypes = acceptType.map { $0.split(separator: ",").map { String($0) } }
        downloads.credentials = try credentials(secrets)
        downloads.clientCertificateFile = cert
        downloads.clientKeyFile = key
        downloads.ipVersion = ipv4 ? .v4 : ipv6 ? .v6 : .any
        downloads.usesHTTP2 = !http1
        downloads.executionOrder = downloadOrder
        let rules = secrets.headerRules.compactMap { HeaderRule($0) }
        if !rules.isEmpty {
            downloads.headersFilter = { url, headers in rules.reduce(into: headers) { $1.apply(to: &$0, of: url) } }
        }
    }

    private func credentials(_ secrets: RequestSecrets) throws(PrefetchError) -> [Credential] {
        var credentials: [Credential] = []
        if let netrc { credentials = Netrc.credentials(in: try RequestSecrets.text(of: netrc), scheme: auth) }
        let hosts = Set(secrets.authHosts.map { $0.lowercased() })
        if let user = secrets.user {
            let parts = user.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            let password = parts.count > 1 ? String(parts[1]) : ""
            credentials.append(Credential(user: String(parts[0]), password: password, scheme: auth, hosts: hosts))
        }
        if let bearer = secrets.bearer { credentials.append(Credential(bearer: bearer, hosts: hosts)) }
        return credentials
    }

    /// The same options as arguments for a worker, without what ``RequestSecrets`` has.
    var arguments: [String] {
        var words: [String] = []
        func add(_ name: String, _ value: String?) { if let value { words += [name, value] } }
        if lowSpeedLimit != 1000 { add("--low-speed-limit", String(lowSpeedLimit)) }
        if lowSpeedTime.seconds != 20 { add("--low-speed-time", lowSpeedTime.argument) }
        add("--max-try-time", maxTryTime?.argument)
        add("--retry-on", retryOn)
        if retryDelay.seconds != 0.5 { add("--retry-delay", retryDelay.argument) }
        if maxRetryAfter.seconds != 60 { add("--max-retry-after", maxRetryAfter.argument) }
        if noResume { words.append("--no-resume") }
        add("--accept-status", acceptStatus)
        add("--accept-type", acceptType)
        add("--netrc", netrc)
        if auth != .basic { add("--auth", auth.rawValue) }
        add("--cert", cert)
        add("--key", key)
        if ipv4 { words.append("--ipv4") }
        if ipv6 { words.append("--ipv6") }
        if http1 { words.append("--http1") }
        if downloadOrder != .fifo { add("--download-order", downloadOrder.rawValue) }
        add("--transfer-log", transferLog)
        return words
    }
}

/// `HOST=Name: value`: a header of the requests for one host.
struct HeaderRule: Sendable, Equatable {
    let host: String
    let name: String
    /// nil removes it.
    let value: String?

    init?(_ text: String) {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, !parts[0].isEmpty else { return nil }
        let header = parts[1].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard header.count == 2, !header[0].isEmpty else { return nil }
        host = parts[0].lowercased()
        name = String(header[0])
        let text = header[1].drop { $0 == " " }
        value = text.isEmpty ? nil : String(text)
    }

    func apply(to headers: inout [HTTPHeader], of url: String) {
        guard let request = try? RequestURL(url), request.host == host else { return }
        headers.removeAll { $0.name.lowercased() == name.lowercased() }
        if let value { headers.append(HTTPHeader(name, value)) }
    }
}

extension Credential.Scheme: ExpressibleByArgument {}
extension DownloadExecutionOrder: ExpressibleByArgument {}
