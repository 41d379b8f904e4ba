internal import Glibc
internal import Threading
internal import WebImage

/// How often, how long, and after which pauses a request to a store is tried again: each is twice as long as the one before.
package struct S3Retries: Sendable {
    let count: Int
    let firstPause: Duration
    let longestPause = Duration.seconds(30)
    /// No try begins later.
    var timeLimit = Duration.seconds(180)
    /// Seconds without a byte that end a try.
    var silenceLimit = 30
    /// How long requests go on after ``S3Client/cancel()``.
    let grace: Duration

    package init(count: Int, firstPause: Duration, grace: Duration = .seconds(3)) {
        (self.count, self.firstPause, self.grace) = (count, firstPause, grace)
    }

    /// Three minutes: a store that is busy, or restarts, ends nothing.
    package static let patient = S3Retries(count: 10, firstPause: .milliseconds(500))
    /// At the start somebody waits.
    package static let quick = {
        var retries = S3Retries(count: 3, firstPause: .milliseconds(500))
        (retries.timeLimit, retries.silenceLimit) = (.seconds(10), 10)
        return retries
    }()
}

/// Sends requests to a bucket until they are answered. Blocks.
final class S3Sender: Sendable {
    /// How often it is looked for that while a pause lasts.
    private static let step = Duration.milliseconds(50)

    private let location: S3Location
    private let settings: S3Settings
    private let retries: S3Retries
    let notice: @Sendable (String) -> Void
    private let handles = S3Handles()
    private let cancelled = Locked<ContinuousClock.Instant?>(nil)

    init(
        _ location: S3Location, _ settings: S3Settings, _ retries: S3Retries,
        _ notice: @escaping @Sendable (String) -> Void
    ) {
        (self.location, self.settings, self.retries, self.notice) = (location, settings, retries, notice)
    }

    /// Of the bucket.
    var address: String { settings.address(of: location.bucket) }

    func cancel() { cancelled.withLock { $0 = $0 ?? .now } }

    private var isCancelled: Bool { cancelled.withLock { $0 != nil } }

    /// * `isAbsenceAnswer`: whether 404 is one.
    /// * `fault`: what is wrong with an answer, because of which it is asked for again.
    func send(
        _ request: S3Request, isAbsenceAnswer: Bool = false, fault: (S3Response) -> String? = { _ in nil }
    ) throws(S3Error) -> S3Response {
        let name = request.key.map { "s3://\(location.bucket)/\($0)" } ?? location.text
        var pause = retries.firstPause
        var tries = 0
        let began = ContinuousClock.now
        while true {
            // One with a time limit is sent once then.
            if isCancelled, request.timeLimit == nil || tries > 0 {
                throw S3Error(.cancelled, "stopped before \(name) was stored")
            }
            let reason: String
            switch exchange(request) {
            case .success(let response) where isAnswer(response, isAbsenceAnswer):
                guard let found = fault(response) else { return response }
                reason = found
            case .success(let response):
                let refusal = S3Refusal(response)
                guard refusal.isRetried else { throw refusal.error(of: name, bucket: location.bucket, settings) }
                reason = refusal.text
            case .failure(let failure):
                reason = failure.text
                if failure.isAborted { throw S3Error(.cancelled, "stopped before \(name) was stored") }
                guard failure.isRetried else {
                    throw S3Error(.configuration, "\(address): \(reason)", hint: failure.hint)
                }
            }
            tries += 1
            guard tries <= retries.count, ContinuousClock.now - began < retries.timeLimit, !isCancelled else {
                throw S3Error(
                    .unavailable,
                    "\(request.verb) \(name) failed" + (tries > 1 ? " \(tries) times" : "") + ": \(reason)",
                    hint: "see that \(address) can be reached, and run it again")
            }
            notice("\(request.verb) \(name): \(reason); trying again")
            sleep(pause)
            pause = min(retries.longestPause, pause * 2)
        }
    }

    private func isAnswer(_ response: S3Response, _ isAbsenceAnswer: Bool) -> Bool {
        if (200..<300).contains(response.status) { return true }
        guard isAbsenceAnswer, response.status == 404 else { return false }
        // Of HEAD there is no more.
        return S3Answer(response.body).value("Code") != "NoSuchBucket"
    }

    private func exchange(_ request: S3Request) -> Result<S3Response, S3Exchange.Failure> {
        guard let handle = handles.take() else { return .failure(.withoutMemory) }
        defer { handles.giveBack(handle) }
        let exchange = S3Exchange(request, over: handle, settings, silenceLimit: retries.silenceLimit) {
            [cancelled, retries] in
            cancelled.withLock { $0.map { .now - $0 > retries.grace } } ?? false
        }
        do throws(S3Exchange.Failure) { return .success(try exchange.response(of: location.bucket)) } catch {
            return .failure(error)
        }
    }

    private func sleep(_ time: Duration) {
        let end = ContinuousClock.now + time
        while !isCancelled, ContinuousClock.now < end {
            let rest = min(Self.step, end - .now)
            usleep(UInt32(max(0, rest.components.attoseconds / 1_000_000_000_000)))
        }
    }
}

/// An answer that is none of those that were asked for.
struct S3Refusal {
    private let status: Int
    /// Of the store; empty where it has no body, as that of HEAD.
    private let code: String, message: String
    private let region: String?

    init(_ response: S3Response) {
        let answer = S3Answer(response.body)
        status = response.status
        code = answer.value("Code") ?? ""
        message = answer.value("Message") ?? ""
        region = response.region ?? answer.value("Region")
    }

    var text: String { code.isEmpty ? "HTTP status \(status)" : "\(code) (\(status))" }

    /// Whether the store may answer otherwise later.
    var isRetried: Bool {
        status >= 500 && status != 501 || [408, 429].contains(status)
            || Self.retriedCodes.contains { $0.hasBytes(of: code) }
    }

    private static let retriedCodes = [
        "RequestTimeout", "SlowDown", "OperationAborted", "BadDigest", "XAmzContentSHA256Mismatch",
    ]

    private static let endedCodes = ["ExpiredToken", "InvalidToken", "TokenRefreshRequired", "RequestExpired"]

    /// * `name`: of what was asked for.
    func error(of name: String, bucket: String, _ settings: S3Settings) -> S3Error {
        let said = message.isEmpty ? text : "\(text): \(message)"
        let hint: String
        if let region, region != settings.region {
            hint = "the bucket is in another region: AWS_REGION=\(region)"
        } else if code == "NoSuchBucket" {
            return S3Error(
                .refused, "there is no bucket \(bucket) at \(settings.address(of: bucket))",
                hint: "create it: aws s3 mb s3://\(bucket)")
        } else if code == "RequestTimeTooSkewed" {
            hint = "set the clock of this machine"
        } else if Self.endedCodes.contains(where: { $0.hasBytes(of: code) }) {
            hint = "these keys are lent for a time, which is over, or their session token is missing: renew them"
        } else if code == "SignatureDoesNotMatch" || code == "InvalidAccessKeyId" {
            hint = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the profile, are not keys of this store"
        } else if status == 403 {
            hint =
                "the key needs s3:ListBucket, s3:GetObject, s3:PutObject, s3:DeleteObject and s3:AbortMultipartUpload"
        } else {
            hint = "see that AWS_ENDPOINT_URL and AWS_REGION are those of the bucket"
        }
        return S3Error(status == 412 ? .taken : .refused, "\(name): \(said)", hint: hint)
    }
}
