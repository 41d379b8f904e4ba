internal import Glibc

/// Finds the number of concurrent transfers with which a worker is fastest, from samples of its transfers (`auto`).
///
/// It climbs: from 16 it doubles the number while that brings throughput, then compares somewhat more and somewhat fewer with the present
/// number, seldom and ever more seldom. The fewer are taken if they are as fast, since each transfer is a load for others. Failures on
/// several hosts (``FailureWatch``) reduce the number at once, and what caused them is a ceiling for a while. If it is connects that fail,
/// no connection is kept without a transfer any more: a router counts those too. Nor does it grow where the way is full (``PathWatch``). The ideas are those of congestion control (RFC 5681, BBR's
/// phases), whose signal is throughput here because latency is the servers' own.
///
/// Without clock, socket or randomness of its own. Limits per host, rates and back-off are not its matter: they hold below its number.
package struct ConcurrencyController: Sendable {
    /// The first number, the least and the most.
    package static let (start, least, most) = (16, 4, 1024)

    /// Transfers that may run at once.
    package private(set) var limit: Int
    package private(set) var reason = ConcurrencyReason.growing

    private enum Direction { case up, down }

    /// Connections that no transfer uses: at first they are kept. They are closed when connects fail, and kept again if it is the list's
    /// hosts that fail. That connects fail with far fewer says nothing: other workers may share the router.
    private enum IdleConnections { case kept, closed, cleared }

    private enum Phase {
        case holding
        /// Compares the present limit with that of ``base``.
        case probing(Direction, from: Int)
    }

    private struct Ceiling {
        /// The least number with which transfers failed, and by what.
        var limit: Int
        var reason: ConcurrencyReason
        var until: Double
    }

    private var phase = Phase.holding
    private var bounds = ConcurrencyBounds()
    /// Seconds of all samples.
    private var now = 0.0
    /// Until then samples still show the limit before.
    private var settlesAt = 0.25
    /// No probe before. At first the list's own share of failures shows, which is seen a second later.
    private var holdsUntil = 2.0
    private var watchesFrom = 0.0
    private var window = ThroughputWindow(most: Self.longestWindow)
    /// The throughput with the limit before a probe.
    private var base = ThroughputWindow(most: Self.longestWindow)
    /// The throughput from which a series of reductions started: each may lose a little of it, but not all together.
    private var reference: Double?
    private var direction = Direction.up
    private var upFactor = Self.fastest
    private var downFactor = Self.firstReduction
    private var holdTime = Self.firstHoldTime
    private var ceiling: Ceiling?
    private var ceilingSeconds = Self.firstCeilingSeconds
    private var failures = FailureWatch()
    private var path = PathWatch()
    /// The limit before the first back-off since it last grew.
    private var limitBefore: Int?
    /// The throughput before a probe that was rejected: what is expected of the limit now.
    private var expected: Double?
    /// The last limit that was rejected, and until when its failures are seen.
    private var rejected: (limit: Int, until: Double)?
    private var hasGrown = false
    private var idle = IdleConnections.kept
    /// Until then connects may still fail for the connections that there were.
    private var roomUntil = 0.0
    private var answers = 0.0, bytes = 0.0

    /// Seconds of samples that are kept of a limit, and after which a probe ends undecided.
    private static let (longestWindow, longestProbe) = (8.0, 4.0)
    private static let leastSamples = 4
    /// Factors of a step upwards: at first, and at the least; of one downwards at first.
    private static let (fastest, slowest, firstReduction) = (2.0, 1.19, 0.8)
    /// A doubling has to bring this share; a reduction may lose that, and a series of them this.
    private static let (worth, loss, totalLoss) = (0.05, 0.02, 0.04)
    /// Seconds between probes at first, and at most.
    private static let (firstHoldTime, longestHoldTime) = (4.0, 60.0)
    /// Seconds for which failures forbid a limit, at first and at most.
    private static let (firstCeilingSeconds, longestCeilingSeconds) = (30.0, 600.0)
    /// Share that failures across hosts leave of the limit (RFC 8312 has the same).
    private static let backOffFactor = 0.7
    /// Share of the connections that are left of those at which connects failed: that many were seen to be possible.
    private static let connectionFactor = 0.9
    /// A failure is seen a second after its cause: by then a lost first packet is repeated (RFC 6298).
    private static let failureDelay = 1.25
    /// After a back-off the first packets that were lost are sent again beside the others, one and three seconds after the first time.
    private static let repetitionDelay = 3.25
    /// Change of throughput after which everything is measured anew.
    private static let change = 0.25
    /// Share of the processors from which more transfers bring nothing.
    private static let busy = 0.97

    /// * `limit`: the first number; a worker that had one by itself before goes on with it.
    package init(limit: Int = Self.start) {
        self.limit = min(Self.most, max(Self.least, limit))
    }

    /// Whether connections are to be kept that no transfer uses.
    package var keepsIdleConnections: Bool { idle != .closed }

    /// Whether the number has just been reduced because connects failed, so that more may fail for the same cause.
    package var makesRoom: Bool { now < roomUntil }

    /// Takes what happened since the last sample, 250 to 500 ms ago, and changes ``limit`` and ``reason``.
    package mutating func take(_ sample: TransferSample, _ bounds: ConcurrencyBounds) {
        guard sample.seconds > 0 else { return }
        now += sample.seconds
        self.bounds = bounds
        if limit > highest {
            move(to: highest)
            hold(seconds: holdTime)
            reason = bound
        }
        // Between batches, during a pause or a local fault there is nothing to learn.
        guard sample.running > 0 || sample.answered > 0 else { return measureAgain() }
        learnBody(sample)
        if now >= watchesFrom {
            switch failures.add(sample, at: now) {
            case .trouble(let trouble): return backOff(trouble, connections: sample.connections)
            case .unrelated: return restore()
            case .shared: limitBefore = nil
            case nil: break
            }
        }
        if path.add(sample.delays, at: now) { return yield() }
        guard now >= settlesAt else { return }
        window.add(sample, isBound: sample.running + max(1, limit / 16) >= limit)
        guard window.count >= Self.leastSamples else { return }
        switch phase {
        case .holding: goOn()
        case .probing(let direction, let from): decide(direction, from: from)
        }
    }

    /// The most that descriptors and memory allow, and which of them does.
    private var highest: Int { max(Self.least, min(bounds.descriptors, bounds.memory, Self.most)) }

    private var bound: ConcurrencyReason {
        if highest == Self.most { return .most }
        return bounds.descriptors <= bounds.memory ? .descriptors : .memory
    }

    /// The usual size of a body: the mean of the last 2,000 answers or so.
    private mutating func learnBody(_ sample: TransferSample) {
        answers += Double(sample.answered)
        bytes += Double(sample.bytes)
        if answers > 2000 { (answers, bytes) = (answers / 2, bytes / 2) }
    }

    private var body: Double { answers > 0 ? bytes / answers : 0 }

    // MARK: Holding

    private mutating func goOn() {
        if let ceiling, now >= ceiling.until {
            self.ceiling = nil
            (direction, upFactor, holdTime, holdsUntil) = (.up, Self.slowest, Self.firstHoldTime, now)
        }
        guard window.isBound else {
            reason = .unused
            return
        }
        if hasChanged {
            (direction, upFactor, downFactor, holdTime) = (.up, Self.fastest, Self.firstReduction, Self.firstHoldTime)
            measureAgain()
            (expected, holdsUntil) = (nil, now)
            return
        }
        expected = nil
        reason = reasonOfHold
        guard now >= holdsUntil, window.rate(body: body).mean > 0 else { return }
        probe()
    }

    private var reasonOfHold: ConcurrencyReason {
        if limit >= highest { return bound }
        if let ceiling { return ceiling.reason }
        if bounds.processor >= Self.busy { return .processor }
        return hasGrown || direction == .down ? .knee : .growing
    }

    /// Whether the last two seconds differ from the time before, or all from the time before a probe, by more than noise.
    private var hasChanged: Bool {
        if let expected {
            let rate = window.rate(body: body)
            let difference = abs(rate.mean - expected)
            if difference > Self.change * expected && difference > 3 * rate.error { return true }
        }
        guard window.seconds >= 4 else { return false }
        let (recent, all) = (window.rate(body: body, last: 2), window.rate(body: body))
        let difference = abs(recent.mean - all.mean)
        return difference > Self.change * all.mean && difference > 3 * recent.error
    }

    private mutating func probe() {
        let target: Int
        switch direction {
        case .up:
            let wanted = Double(limit) * upFactor
            var highest = self.highest
            if let ceiling {
                // Halfway, by factors, to where transfers failed.
                highest = min(highest, Int((Double(limit) * Double(ceiling.limit)).squareRoot()))
            }
            target = min(highest, max(limit + 1, Int(wanted.rounded())))
            if target <= limit + limit / 20 || bounds.processor >= Self.busy { return turn() }
        case .down:
            target = max(Self.least, Int((Double(limit) * downFactor).rounded(.down)))
            if target >= limit { return turn() }
            reference = reference ?? window.rate(body: body).mean
        }
        if direction == .up {
            // The back-offs before have helped.
            limitBefore = nil
            failures.endBlame()
        }
        base = window
        phase = .probing(direction, from: limit)
        reason = direction == .up && holdTime == Self.firstHoldTime ? .growing : .probing
        move(to: target)
    }

    /// The other direction next, after a while.
    private mutating func turn() {
        direction = direction == .up ? .down : .up
        reference = nil
        holdsUntil = now + holdTime
        holdTime = min(Self.longestHoldTime, holdTime * 2)
    }

    // MARK: Probing

    private mutating func decide(_ direction: Direction, from: Int) {
        let (old, new) = (base.rate(body: body), window.rate(body: body))
        let gain = new.mean / old.mean - 1
        let error = max(0.01, (old.error * old.error + new.error * new.error).squareRoot() / old.mean)
        let threshold = direction == .up ? Self.worth * log2(Double(limit) / Double(from)) : -Self.loss
        guard abs(gain - threshold) > 2 * error || window.seconds >= Self.longestProbe else { return }
        switch direction {
        case .up where gain > threshold: grow(from: from)
        case .up:
            expected = old.mean
            rejected = (limit, now + Self.repetitionDelay)
            reject(from: from, isWorse: gain < -threshold && gain < -2 * error)
        case .down where gain > threshold && new.mean >= (reference ?? 0) * (1 - Self.totalLoss):
            phase = .holding
            holdTime = Self.firstHoldTime
            holdsUntil = now
        case .down:
            downFactor = downFactor.squareRoot()
            expected = old.mean
            reject(from: from, isWorse: false)
        }
    }

    private mutating func grow(from: Int) {
        hasGrown = true
        phase = .holding
        // Unused slots: the hosts are the limit.
        let used = Int(Double(window.busiest) * 1.2)
        if used < limit { limit = max(from + 1, used) }
        upFactor = min(Self.fastest, upFactor * upFactor)
        (holdTime, downFactor, holdsUntil) = (Self.firstHoldTime, Self.firstReduction, now)
        reason = .growing
    }

    private mutating func reject(from: Int, isWorse: Bool) {
        move(to: from)
        phase = .holding
        hasGrown = true
        let canRefine = isWorse && upFactor > Self.slowest
        upFactor = max(Self.slowest, upFactor.squareRoot())
        if canRefine {
            // The best is between the two.
            holdsUntil = now
        } else {
            turn()
        }
    }

    // MARK: Failures

    /// * `connections`: those there are; 0 if that is not known.
    private mutating func backOff(_ trouble: FailureWatch.Trouble, connections: Int) {
        if trouble.kind == .connect { roomUntil = now + Self.repetitionDelay }
        if !hasGrown, limit <= Self.start {
            return answerStart(trouble, connections: connections)
        }
        limitBefore = limitBefore ?? limit
        let why: ConcurrencyReason =
            switch trouble.kind {
            case .connect: .connects
            case .name: .names
            case .body: .bodies
            }
        failures.blame(trouble)
        var (failing, reduced) = (limit, Int(Double(limit) * Self.backOffFactor))
        // What a probe started from was in order.
        if case .probing(.up, let from) = phase {
            reduced = from
        } else if let rejected, now < rejected.until {
            (failing, reduced) = (rejected.limit, limit)
        }
        if trouble.kind == .connect, connections > 0 {
            decideOnIdle(connections)
            // All of them are transfers' then, and so many are possible.
            failing = keepsIdleConnections ? min(limit, connections) : connections
            if !keepsIdleConnections {
                reduced = min(limit, max(reduced, Int(Double(failing) * Self.connectionFactor)))
            }
        }
        ceiling = Ceiling(limit: failing, reason: why, until: now + ceilingSeconds)
        ceilingSeconds = min(Self.longestCeilingSeconds, ceilingSeconds * 2)
        move(to: max(Self.least, reduced))
        watchesFrom = now + Self.repetitionDelay
        hold(seconds: 2)
        (direction, upFactor, hasGrown, reason) = (.up, Self.fastest.squareRoot(), true, why)
    }

    /// The first transfers are too few to be the cause. The connections beside them may be: they are closed, and if as much fails then, it is
    /// the list's own.
    private mutating func answerStart(_ trouble: FailureWatch.Trouble, connections: Int) {
        let wereKept = keepsIdleConnections
        if trouble.kind == .connect { decideOnIdle(connections) }
        guard wereKept, !keepsIdleConnections else {
            if !wereKept { idle = .cleared }
            return failures.accept()
        }
        watchesFrom = roomUntil
        holdsUntil = max(holdsUntil, roomUntil + 1)
        failures.clear()
    }

    /// Decides what becomes of connections without a transfer when connects fail.
    private mutating func decideOnIdle(_ connections: Int) {
        if idle == .kept, connections > limit + limit / 8 { idle = .closed }
    }

    /// The list has dead hosts, however many transfers run.
    private mutating func restore() {
        idle = .cleared
        ceiling = nil
        ceilingSeconds = Self.firstCeilingSeconds
        move(to: limitBefore ?? limit)
        limitBefore = nil
        hold(seconds: 0)
        (upFactor, reason) = (Self.fastest, .growing)
    }

    // MARK: A full way

    /// More transfers would take their throughput from others that share the way, such as this machine's other workers, which is not a gain.
    private mutating func yield() {
        // Connections that there are show nothing: the number is remembered instead.
        ceiling = Ceiling(limit: limit, reason: .knee, until: now + ceilingSeconds)
        ceilingSeconds = min(Self.longestCeilingSeconds, ceilingSeconds * 2)
        if case .probing(.up, let from) = phase {
            move(to: from)
        } else {
            move(to: max(Self.least, Int(Double(limit) * Self.backOffFactor)))
        }
        (phase, direction, hasGrown, reason) = (.holding, .down, true, .knee)
        upFactor = max(Self.slowest, upFactor.squareRoot())
        turn()
    }

    // MARK: Changes

    private mutating func hold(seconds: Double) {
        phase = .holding
        holdsUntil = now + seconds
    }

    /// Samples count again when the transfers of the present number have come and gone once.
    private mutating func move(to count: Int) {
        let rate = window.answerRate
        let duration = rate > 0 ? 1.2 * Double(limit) / rate : 1
        limit = min(count, highest)
        settlesAt = now + min(3, max(0.25, duration))
        watchesFrom = now + Self.failureDelay
        failures.clear()
        path.clear()
        window = ThroughputWindow(most: Self.longestWindow)
    }

    private mutating func measureAgain() {
        settlesAt = max(settlesAt, now)
        window = ThroughputWindow(most: Self.longestWindow)
    }
}
