/// One URL on its way: its waiters, its tries and redirects, where it waits, and the transfer it has now
/// (SDWebImageDownloaderOperation).
///
/// Only the downloader's thread uses it. Each group of its variables is changed by one owner, which the mark above it names.
final class DownloadOperation {
    /// What makes two downloads the same transfer.
    struct Key: Hashable {
        let url: String
        let options: DownloadOptions
        let headers: [HTTPHeader]
        /// The number of its jar; nil where it neither sends nor keeps cookies.
        let jar: UInt64?
        /// Its profile, where that is not the downloader's own.
        let profile: ObjectIdentifier?
    }

    /// What its first caller asks for.
    struct Parameters {
        let priority: Int
        /// Tries that the caller has made.
        let attemptsUsed: Int
        /// Its jar, which lasts at least as long as it does.
        let cookies: CookieJar?
    }

    /// What is told of the last transfer when the download has ended.
    struct Ending {
        let timing: DownloadedImage.Timing
        let status: Int
        let httpVersion: String?
    }

    let key: Key
    let parameters: Parameters
    /// How its requests are made.
    let profile: RequestProfile
    /// The URL of the first hop of every try.
    let start: RequestURL
    /// All headers, where a filter or a modifier made them.
    let requestHeaders: [HTTPHeader]?

    init(
        key: Key, profile: RequestProfile, start: RequestURL, requestHeaders: [HTTPHeader]? = nil,
        parameters: Parameters
    ) {
        self.key = key
        self.profile = profile
        self.start = start
        self.requestHeaders = requestHeaders
        self.parameters = parameters
        request = start
        attempts = parameters.attemptsUsed
    }

    // MARK: Its callers, of the loop

    /// Who gets the result. Empty: nobody any more.
    private(set) var waiters: [DownloadCall] = []
    /// Hears of a response's header and of bytes; nil where nobody wants to.
    private(set) var observer: DownloadObserver?
    /// How its last transfer ended, where somebody listens.
    private(set) var ending: Ending?

    /// Whether nobody who waits for it may begin anything any more.
    var isRevoked: Bool { waiters.allSatisfy { $0.permit?.isRevoked == true } }

    /// One more caller waits for it, and hears of it where it or the listeners want to.
    func add(_ call: DownloadCall, listeners: DownloadListeners) {
        waiters.append(call)
        guard observer == nil, waiters.contains(where: { $0.progress != nil }) || !listeners.isEmpty else { return }
        observer = DownloadObserver(interval: profile.configuration.minimumProgressInterval, listeners: listeners)
    }

    /// A caller has cancelled; false where it does not wait here.
    func cancel(_ call: DownloadCall) -> Bool {
        guard let index = waiters.firstIndex(where: { $0 === call }) else { return false }
        waiters.remove(at: index).end(.failure(.downloadCancelled))
        return true
    }

    /// Ends all its callers' waiting.
    func end(_ result: Result<DownloadedImage, WebImageError>) {
        let all = waiters
        waiters = []
        for waiter in all { waiter.end(result) }
    }

    /// Keeps what a `stop` says of the transfer, before its handle serves another.
    func noteEnd(_ info: CurlInfo) {
        let status = info.status
        ending = Ending(timing: info.timing, status: status, httpVersion: status > 0 ? info.httpVersion : nil)
    }

    // MARK: Its tries, of the loop

    /// The URL of the hop now.
    private(set) var request: RequestURL
    private(set) var redirects = 0
    /// Tries begun, those of the caller included.
    private(set) var attempts: Int
    /// Those of them that only found out that nobody is there: they do not use up the URL's tries.
    private var excused = 0
    /// Whether its last try found nobody there.
    private(set) var metSilence = false
    /// When its next try is due, and why the last one failed, while it pauses between the two.
    private(set) var pause: (due: Double, error: WebImageError)?
    /// What the try before has left to go on with.
    private(set) var partial: PartialBody?

    /// Whether the hop is still at the site the user's credentials are for.
    var isAtOrigin: Bool { redirects == 0 || request.origin == start.origin }
    /// Tries that count against those it has.
    var countedAttempts: Int { attempts - excused }
    /// What the hop can go on with.
    var rest: PartialBody? { partial.flatMap { $0.url == request.text ? $0 : nil } }

    /// Begins a try at its first hop.
    func beginAttempt() {
        attempts += 1
        pause = nil
        redirects = 0
        request = start
        lastProgress = TransferProgress()
    }

    /// Goes on at the next hop of the same try.
    func follow(_ next: RequestURL) {
        redirects += 1
        request = next
    }

    /// A try failed.
    /// * `isExcused`: nobody was there to answer, which is not the URL's fault.
    func didFail(metSilence: Bool, isExcused: Bool) {
        self.metSilence = metSilence
        if isExcused { excused += 1 }
    }

    /// Its next try is due then.
    func pause(until due: Double, after error: WebImageError, now: Double) {
        since = now
        pause = (due, error)
    }

    /// Keeps what its next try can go on with; nil: nothing.
    func keep(_ partial: PartialBody?) { self.partial = partial }

    // MARK: Where it waits, of the host schedule

    /// When it began to wait, for a slot or for its next try.
    private(set) var since = 0.0
    /// What counts as its hop's host, since it was put into the queue.
    private(set) var host = ""
    /// The host that lent it a slot.
    private(set) var slotHost: String?
    /// Whether its transfer finds out whether a silent host is there.
    private(set) var isProbe = false

    /// It waits from now on, for a slot of a host; nil: for its site's robots.txt.
    func wait(for host: String?, now: Double) {
        since = now
        if let host { self.host = host }
    }

    func takeSlot(isProbe: Bool) {
        slotHost = host
        self.isProbe = isProbe
    }

    /// The host whose slot it had; nil where it had none.
    func giveSlotBack() -> String? {
        defer { slotHost = nil }
        return slotHost
    }

    /// Whether it was a probe, which has ended.
    func endProbe() -> Bool {
        defer { isProbe = false }
        return isProbe
    }

    // MARK: Its transfer, of the running transfers

    /// What its transfer runs on; nil where it has none.
    private(set) var handle: CurlHandle?
    /// Its place among the running.
    private(set) var index = 0
    private(set) var isParked = false
    /// Whether a transfer of it has begun.
    private(set) var hasBegun = false
    /// What all of its transfers have taken.
    private(set) var spent = TransferTime()
    /// Bytes of the last transfer's body, and how many it should have had.
    private(set) var received = 0
    private(set) var expected: Int?
    private var lastProgress = TransferProgress()

    /// How far its transfer has come, or came.
    var progress: TransferProgress { handle?.response.progress ?? lastProgress }

    /// A transfer of it runs.
    func beginTransfer(on handle: CurlHandle) {
        self.handle = handle
        hasBegun = true
        isParked = false
        spent.beginHop()
    }

    /// Its transfer has ended, or did not begin after all.
    func endTransfer() {
        guard let ended = handle else { return }
        lastProgress = ended.response.progress
        received = ended.response.received
        expected = ended.response.expected
        isParked = false
        handle = nil
    }

    func move(to index: Int) { self.index = index }

    func setParked(_ parked: Bool) { isParked = parked }

    /// Counts what the transfer took since the last look.
    func count(isHeldBack: Bool, now: Double) { spent.count(progress, isHeldBack: isHeldBack, now: now) }
}
