/// The download of one URL: callers, tries, redirects, place in the queue, and current transfer (SDWebImageDownloaderOperation). Used
/// only on the downloader's thread. Each group of variables is changed only by the owner named in the mark above it.
final class DownloadOperation {
    /// Downloads with equal keys share one transfer.
    struct Key: Hashable {
        let url: String
        let options: DownloadOptions
        let headers: [HTTPHeader]
        /// Number of its cookie jar; nil: without cookies.
        let jar: UInt64?
        /// Its profile, unless it is the downloader's default.
        let profile: ObjectIdentifier?
        /// Which images it takes; nil: all.
        let rules: HeaderRules?
        /// Computed once: the key is looked up several times, and a URL is long.
        private let digest: Int

        init(
            url: String, options: DownloadOptions, headers: [HTTPHeader], jar: UInt64?, profile: ObjectIdentifier?,
            rules: HeaderRules?
        ) {
            (self.url, self.options, self.headers, self.jar) = (url, options, headers, jar)
            (self.profile, self.rules) = (profile, rules)
            digest = ByteText(url).hashValue
        }

        func hash(into hasher: inout Hasher) { hasher.combine(digest) }

        static func == (lhs: Key, rhs: Key) -> Bool {
            lhs.digest == rhs.digest && ByteText(lhs.url) == ByteText(rhs.url) && lhs.options == rhs.options
                && lhs.jar == rhs.jar
                && lhs.profile == rhs.profile && lhs.rules == rhs.rules && lhs.headers == rhs.headers
        }
    }

    struct Parameters {
        let priority: Int
        /// Tries already made by the caller.
        let triesUsed: Int
        /// Keeps the jar alive.
        let cookies: CookieJar?
    }

    struct Ending {
        let timing: DownloadedImage.Timing
        let status: Int
        let httpVersion: String?
    }

    let key: Key
    let parameters: Parameters
    let profile: RequestProfile
    let start: RequestURL
    private let startSite: RequestSite
    /// All headers, if made by a filter or modifier.
    let requestHeaders: [HTTPHeader]?

    init(
        key: Key, profile: RequestProfile, start: RequestURL, at site: RequestSite,
        requestHeaders: [HTTPHeader]? = nil, parameters: Parameters
    ) {
        self.key = key
        self.profile = profile
        self.start = start
        self.requestHeaders = requestHeaders
        self.parameters = parameters
        request = start
        startSite = site
        self.site = site
        tries = parameters.triesUsed
    }

    // MARK: Callers (owner: loop)

    private(set) var waiters: [DownloadCaller] = []
    /// Reports the response header and bytes; nil without listeners.
    private(set) var observer: DownloadObserver?
    /// How its last transfer ended, if there are listeners.
    private(set) var ending: Ending?

    /// Whether the permits of all callers have been revoked.
    var isRevoked: Bool { waiters.allSatisfy { $0.permit?.isRevoked == true } }

    /// Adds a caller, and an observer if the caller or the listeners need it.
    func add(_ call: DownloadCaller, listeners: DownloadListeners) {
        waiters.append(call)
        guard observer == nil, waiters.contains(where: { $0.progress != nil }) || !listeners.isEmpty else { return }
        observer = DownloadObserver(interval: profile.configuration.minimumProgressInterval, listeners: listeners)
    }

    func cancel(_ call: DownloadCaller) -> Bool {
        guard let index = waiters.firstIndex(where: { $0 === call }) else { return false }
        waiters.remove(at: index).end(.failure(.downloadCancelled))
        return true
    }

    /// Gives all callers the result, and returns them to be resumed.
    func end(_ result: Result<DownloadedImage, WebImageError>) -> [DownloadCaller] {
        let all = waiters
        waiters = []
        for waiter in all { waiter.take(result) }
        return all
    }

    /// Keeps the data for the `stop` event before the handle is reused.
    func recordEnd(_ info: CurlInfo) {
        let status = info.status
        ending = Ending(timing: info.timing, status: status, httpVersion: status > 0 ? info.httpVersion : nil)
    }

    // MARK: Tries (owner: loop)

    private(set) var request: RequestURL
    /// The site of its hop.
    private(set) var site: RequestSite
    private(set) var redirects = 0
    /// Tries started, including those of the caller.
    private(set) var tries: Int
    /// Tries that only found the host unreachable: they do not count against the URL.
    private(set) var excused = 0
    /// Tries that probes of its host made in its place.
    private var triesByProbes = 0
    private(set) var hostWasSilent = false
    /// Whether it got no answer while its host answered others: then it is the URL that is silent.
    private(set) var isSilentItself = false
    /// Due time of the retry and the last error, while it waits for a retry.
    private(set) var pause: (due: Double, error: WebImageError)?
    private(set) var partial: PartialBody?
    /// Whether curl is to leave its body in its codings: it refused one that it does not know.
    private(set) var leavesCodings = false

    /// Whether the hop is still at the site to which the user's credentials apply.
    var isAtOrigin: Bool { redirects == 0 || request.origin == start.origin }
    var countedTries: Int { tries - excused + triesByProbes }
    /// The partial body, if the hop can resume it.
    var rest: PartialBody? { partial.flatMap { $0.url == request.text ? $0 : nil } }

    func beginTry() {
        tries += 1
        pause = nil
        redirects = 0
        request = start
        site = startSite
        lastProgress = TransferProgress()
    }

    func leaveCodings() { leavesCodings = true }

    func follow(_ next: RequestURL, to site: RequestSite) {
        redirects += 1
        request = next
        self.site = site
    }

    /// Whether another try may be left out of its count.
    var mayBeExcused: Bool { excused < 32 }

    /// Records a failed try.
    /// * `isExcused`: the host was unreachable, which is not the URL's fault.
    func didFail(hostWasSilent: Bool, isExcused: Bool, isSilentItself: Bool) {
        self.hostWasSilent = hostWasSilent
        self.isSilentItself = isSilentItself
        if isExcused { excused += 1 }
    }

    func add(triesByProbes count: Int) { triesByProbes += count }

    func pause(until due: Double, after error: WebImageError, now: Double) {
        since = now
        pause = (due, error)
    }

    /// The error of a hop that is refused before its request: the try that begins with it was none.
    func refused(_ error: WebImageError) -> WebImageError {
        var error = error
        error.tries = redirects > 0 ? tries : tries - 1
        return error
    }

    /// Sets what the next try can resume; nil: nothing.
    func keep(_ partial: PartialBody?) { self.partial = partial }

    // MARK: Name (owner: name book)

    /// The name of its hop, if that was resolved.
    private(set) var name: CachedName?
    private(set) var isWaitingForName = false

    func resolve(_ name: CachedName, waits: Bool = false) { (self.name, isWaitingForName) = (name, waits) }

    func stopWaitingForName() { isWaitingForName = false }

    // MARK: Waiting (owner: host schedule)

    /// Start of the wait for a slot or a retry.
    private(set) var since = 0.0
    /// The host of its hop, as counted by the queue.
    private(set) var host = ""
    /// The address of its hop; nil: unknown, or not limited.
    private(set) var address: LimitedAddress?
    typealias Place = DownloadQueue<DownloadOperation>.Place
    /// Where it waits in the queue of its host; nil: it does not.
    private(set) var place: Place?
    private(set) var slot: Place?
    private(set) var slotAddress: LimitedAddress?
    private(set) var isProbe = false
    /// What its transfer is for the reduced number of requests to its host.
    private(set) var windowUse = WindowUse.counts

    enum WindowUse {
        /// It waits for an answer.
        case counts
        /// It is not expected to get one.
        case isExempt
        case wasAnswered
    }

    /// Starts waiting for a slot of `host` and of `address`, or (nil) for the site's robots.txt.
    func wait(for host: String?, address: LimitedAddress? = nil, now: Double) {
        since = now
        self.address = address
        if let host { self.host = host }
    }

    func wait(at place: Place) { self.place = place }

    /// Returns its place in the queue, which it leaves; nil if it had none.
    func leaveQueue() -> Place? {
        defer { place = nil }
        return place
    }

    func takeSlot(isProbe: Bool) {
        slot = leaveQueue()
        slotAddress = address
        self.isProbe = isProbe
        windowUse = isSilentItself ? .isExempt : .counts
    }

    func wasAnswered() { windowUse = .wasAnswered }

    /// Returns the slots that it held of its host and of its address, if any, and what its transfer was for the host's window.
    func releaseSlot() -> (slot: Place, address: LimitedAddress?, windowUse: WindowUse)? {
        defer { (slot, slotAddress) = (nil, nil) }
        return slot.map { ($0, slotAddress, windowUse) }
    }

    /// Whether it was a probe; clears the flag.
    func endProbe() -> Bool {
        defer { isProbe = false }
        return isProbe
    }

    // MARK: Transfer (owner: running transfers)

    private(set) var handle: CurlHandle?
    private(set) var keepsConnection = true
    private(set) var index = 0
    private(set) var isStalled = false
    private(set) var hasBegun = false
    private(set) var spent = TransferTime()
    /// Received and expected bytes of the last transfer's body.
    private(set) var received = 0
    private(set) var expected: Int?
    private var lastProgress = TransferProgress()

    var progress: TransferProgress { handle?.response.progress ?? lastProgress }

    /// * `keepsConnection`: whether its connection is kept for others.
    func beginTransfer(on handle: CurlHandle, keepsConnection: Bool) {
        self.handle = handle
        self.keepsConnection = keepsConnection
        hasBegun = true
        isStalled = false
        spent.beginHop()
    }

    func endTransfer() {
        guard let ended = handle else { return }
        lastProgress = ended.response.progress
        received = ended.response.received
        expected = ended.response.expected
        isStalled = false
        handle = nil
    }

    func move(to index: Int) { self.index = index }

    func setStalled(_ stalled: Bool) { isStalled = stalled }

    /// Accounts for the time of the transfer since the last call.
    func count(isThrottled: Bool, now: Double) { spent.count(progress, isThrottled: isThrottled, now: now) }
}
