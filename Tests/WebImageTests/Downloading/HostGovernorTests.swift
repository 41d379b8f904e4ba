import Testing

@testable import WebImage

@Suite("When hosts may be asked, by a clock of the test's own")
struct HostGovernorTests {
    private func governor(
        waitLimit: Double = 30, isShared: Bool = false, silent: SilentHosts = SilentHosts(),
        _ change: (inout HostPolicy) -> Void = { _ in }
    ) -> HostGovernor {
        var policy = HostPolicy()
        policy.failuresInARow = 3
        policy.backsOff = true
        policy.waitLimit = waitLimit
        change(&policy)
        return HostGovernor(policy, isShared: isShared, silent: silent, random: { 0 })
    }

    /// Whether it has nothing for other processes.
    private func isSilent(_ governor: HostGovernor) -> Bool {
        let calls = governor.takeMessages { _, _ in 1 }
        return calls.hostRequests.isEmpty && calls.news.isEmpty
    }

    private static let refused = WebImageError(.cannotConnectToHost, "refused", isTransient: true)

    private static func status(_ status: Int, retryAfter: Double? = nil) -> WebImageError {
        WebImageError(status: status, retryAfter: retryAfter)
    }

    @Test(
        "However many share a schedule and however late each is, no second has more than the rate and one",
        arguments: [0.5, 3, 20, 250])
    func schedule(rate: Double) {
        var schedule = RateSchedule()
        var random = SystemRandomNumberGenerator()
        var slots = (0..<4).map { _ in HostSlots() }
        var sent: [Double] = []
        var now = 100.0
        let end = now + max(60, 20 / rate)
        while now < end {
            for index in slots.indices {
                if slots[index].count <= RateSchedule.share(rate) / 2,
                    let more = schedule.reserve(RateSchedule.share(rate), rate: rate, now: now)
                {
                    slots[index].add(more)
                }
                // About once in fifty reservations one of them dies, with all it has reserved.
                let deaths = rate * 0.00225 / Double(4 * 50 * RateSchedule.share(rate))
                if Double.random(in: 0..<1, using: &random) < deaths { slots[index] = HostSlots() }
                while slots[index].take(now: now, lateness: RateSchedule.lateness(rate)).isTaken { sent.append(now) }
            }
            now += Double.random(in: 0.0005...0.004, using: &random)
        }
        for (index, first) in sent.enumerated() {
            let within = sent[index...].prefix { $0 < first + 1 }.count
            #expect(Double(within) <= rate.rounded(.up) + 1)
        }
        let mean = Double(sent.count) / (end - 100)
        #expect(mean <= rate && mean >= rate * 0.9, "\(mean) of \(rate)")
    }

    @Test(
        "A failed probe stands for those who waited before it, of one that gives no response only for those without one"
    )
    func probesStand() {
        let governor = governor()
        func probes(since: Double, wasTried: Bool = false, now: Double) -> Int {
            governor.probes(of: "h", standingForURLSince: since, wasTried: wasTried, now: now)
        }
        for _ in 0..<3 { _ = governor.didFail("h", Self.refused, wasReached: false, began: 1, now: 2) }
        #expect(probes(since: 0, now: 2) == 0, "what began before the hold is no probe")
        var now = 2.0
        for count in 1...4 {
            now += 61
            #expect(
                governor.mayBegin("h", rate: nil, running: 0, waiting: 9, now: now)
                    && governor.admission(to: "h") == .probe)
            _ = governor.didFail("h", Self.refused, wasReached: false, began: now, now: now)
            #expect(probes(since: 0, now: now) == count && probes(since: now, now: now) == 1)
            #expect(probes(since: now + 1, now: now) == 0)
        }
        governor.didAnswer("h", nil, firstByte: nil, began: now, running: 1, maxWait: 60, now: now)
        #expect(probes(since: 0, now: now) == 0)

        let silence = WebImageError(.timedOut, "no header line for 5 s", isTransient: true)
        for _ in 0..<3 { _ = governor.didFail("h", silence, wasReached: true, began: now, now: now) }
        for count in 1...3 {
            now += 61
            #expect(governor.mayBegin("h", rate: nil, running: 0, waiting: 9, now: now))
            _ = governor.didFail("h", silence, wasReached: true, began: now, now: now)
            #expect(probes(since: 0, wasTried: true, now: now) == count)
            #expect(probes(since: 0, now: now) == (count < 3 ? 0 : 3), "others prove nothing about it")
        }
        governor.didAnswer("h", Self.status(404), firstByte: nil, began: now, running: 1, maxWait: 60, now: now)

        for count in 0...2 {
            governor.didAnswer(
                "h", Self.status(503, retryAfter: 1), isRetry: true, firstByte: nil, began: now, running: 2,
                maxWait: 60,
                now: now)
            // It had begun before: one request that was running beside it.
            governor.didAnswer(
                "h", Self.status(503, retryAfter: 1), isRetry: true, firstByte: nil, began: now - 0.5, running: 1,
                maxWait: 60, now: now)
            #expect(probes(since: 0, now: now) == count)
            now += 2
            #expect(probes(since: 0, now: now) == 0, "it may be asked")
            #expect(
                governor.mayBegin("h", rate: nil, running: 0, waiting: 9, now: now)
                    && governor.admission(to: "h") == .afterRefusal)
        }
        governor.didAnswer(
            "h", Self.status(503, retryAfter: 1), firstByte: nil, began: now, running: 2, maxWait: 60, now: now)
        #expect(probes(since: 0, now: now) == 2, "the first request for a URL says nothing of others")
        governor.didAnswer("h", nil, firstByte: nil, began: now, running: 1, maxWait: 60, now: now)
        #expect(probes(since: 0, now: now) == 0)
    }

    @Test("A probe of another process that failed stands for this one's URLs too")
    func probesElsewhere() {
        let governor = governor(isShared: true)
        func adopt(until: Double, now: Double) {
            let report = HostReport(
                host: "h", state: .silent, until: until, since: 10, failures: 3, error: Self.refused)
            governor.adopt([report], now: now)
        }
        adopt(until: 11, now: 10)
        #expect(governor.probes(of: "h", standingForURLSince: 5, wasTried: false, now: 10) == 0)
        adopt(until: 11, now: 10.5)
        #expect(governor.probes(of: "h", standingForURLSince: 5, wasTried: false, now: 10.5) == 0)
        adopt(until: 13, now: 11.1)
        #expect(governor.probes(of: "h", standingForURLSince: 5, wasTried: false, now: 11.1) == 1)
        #expect(governor.probes(of: "h", standingForURLSince: 12, wasTried: false, now: 11.1) == 0)
    }

    @Test("Without others a governor keeps to its rate by itself")
    func alone() {
        let governor = governor()
        var begun = 0
        var now = 5.0
        while now < 15 {
            while governor.mayBegin("a", rate: 10, running: 0, waiting: 1000, now: now) { begun += 1 }
            now += 0.002
        }
        #expect((95...100).contains(begun))
        // What was not used is not saved up.
        #expect(governor.mayBegin("a", rate: 10, running: 0, waiting: 9, now: 100))
        #expect(!governor.mayBegin("a", rate: 10, running: 0, waiting: 9, now: 100.01))
        #expect(isSilent(governor))
    }

    @Test("With others it asks once for a share, and begins at the instants it is given")
    func shared() throws {
        let governor = governor(isShared: true)
        #expect(!governor.mayBegin("a", rate: 20, running: 0, waiting: 3, now: 1))
        #expect(!governor.mayBegin("a", rate: 20, running: 0, waiting: 3, now: 1.01))
        let calls = governor.takeMessages { _, _ in 3 }
        #expect(calls.hostRequests == [HostSlotRequest(host: "a", count: 3, rate: 20)])
        #expect(isSilent(governor))
        governor.grant(calls.hostRequests[0], HostReservation(first: 2, interval: 0.05, count: 2), now: 1.1)
        #expect(governor.nextDue(now: 1.1) == "a")
        #expect(!governor.mayBegin("a", rate: 20, running: 0, waiting: 3, now: 1.1))
        #expect(governor.nextWake == 2)
        #expect(governor.nextDue(now: 2) == "a")
        #expect(governor.mayBegin("a", rate: 20, running: 0, waiting: 3, now: 2))
        // The second one has passed by now, and is lost.
        #expect(!governor.mayBegin("a", rate: 20, running: 1, waiting: 2, now: 2.2))
        // None now: it is asked again later, not at once.
        let again = governor.takeMessages { _, _ in 2 }.hostRequests
        governor.grant(try #require(again.first), nil, now: 2.3)
        #expect(governor.nextDue(now: 2.3) == "a")
        #expect(!governor.mayBegin("a", rate: 20, running: 1, waiting: 2, now: 2.31))
        #expect(isSilent(governor))
        #expect(governor.nextDue(now: 3) == "a")
        #expect(!governor.mayBegin("a", rate: 20, running: 1, waiting: 2, now: 3))
        #expect(!isSilent(governor))
    }

    @Test(
        "A host that gives no answer gets nothing but probes ever further apart, and is given up after its wait limit")
    func silence() throws {
        let governor = governor(waitLimit: 5)
        for index in 0..<3 {
            #expect(governor.mayBegin("a", rate: nil, running: index, waiting: 9, now: 0))
            // The one that makes it silent already waits with the others.
            #expect(
                governor.didFail("a", Self.refused, wasReached: false, began: 0, now: 0)
                    == (index == 2 ? .host : .unknown))
        }
        #expect(!governor.mayBegin("a", rate: nil, running: 0, waiting: 9, now: 0.9))
        #expect(governor.reason(for: "a", now: 0.5)?.text == "3 failures in a row: refused")
        #expect(governor.reason(for: "a", now: 0.5)?.remaining == 0.5)
        #expect(governor.nextDue(now: 1) == "a")
        #expect(governor.mayBegin("a", rate: nil, running: 0, waiting: 9, now: 1))
        #expect(!governor.mayBegin("a", rate: nil, running: 1, waiting: 8, now: 1))
        #expect(governor.didFail("a", Self.refused, wasReached: false, began: 1, now: 1.1) == .host)
        #expect(!governor.mayBegin("a", rate: nil, running: 0, waiting: 9, now: 3))
        #expect(governor.mayBegin("a", rate: nil, running: 0, waiting: 9, now: 3.1))
        #expect(governor.refusal(of: "a", arrivedAt: 0, wasTried: false, triesLeft: nil, now: 4.9) == nil)
        // The probe is still on its way when the wait limit ends: others end as the last one did.
        #expect(governor.isAbandoned("a", now: 5))
        let refusal = try #require(governor.refusal(of: "a", arrivedAt: 0, wasTried: false, triesLeft: nil, now: 5))
        #expect(refusal.code == .cannotConnectToHost && !refusal.isTransient)
        #expect(refusal.message == "the host has given no answer for 5 s: refused")
        #expect(governor.didFail("a", Self.refused, wasReached: false, began: 3.1, now: 5.1) != .host)
        #expect(governor.refusal(of: "a", arrivedAt: 0, wasTried: false, triesLeft: nil, now: 9) != nil)
        // Four seconds later one of them may look again.
        #expect(governor.refusal(of: "a", arrivedAt: 0, wasTried: false, triesLeft: nil, now: 9.2) == nil)
        #expect(governor.mayBegin("a", rate: nil, running: 0, waiting: 1, now: 9.2))
        governor.didAnswer("a", nil, firstByte: 0.1, began: 9.2, running: 1, maxWait: 60, now: 9.3)
        #expect(governor.refusal(of: "a", arrivedAt: 0, wasTried: false, triesLeft: nil, now: 9.3) == nil)
        #expect(governor.nextDue(now: 9.3) == "a")
        #expect(governor.mayBegin("a", rate: nil, running: 0, waiting: 9, now: 9.3))
    }

    @Test("While nothing else is left, a silent host's URLs wait for a shorter time, but only if that is asked for")
    func lastWait() {
        for shortens in [true, false] {
            let silent = SilentHosts()
            let governor = governor(silent: silent) { $0.shortensLastWait = shortens }
            for index in 0..<3 {
                _ = governor.mayBegin("a", rate: nil, running: index, waiting: 9, now: 0)
                _ = governor.didFail("a", Self.refused, wasReached: false, began: 0, now: 0)
            }
            #expect(silent.contains("a") && !silent.contains("b"))
            #expect(governor.nextDue(now: 1) == "a" && governor.nextWake == 30)
            #expect(governor.mayBegin("a", rate: nil, running: 0, waiting: 9, now: 1))
            #expect(!governor.isAbandoned("a", now: 11))
            silent.shortenWait(to: 10)
            #expect(governor.nextWake == (shortens ? 10 : 30))
            #expect(governor.nextDue(now: 10) == (shortens ? "a" : nil) && governor.nextDue(now: 10) == nil)
            #expect(!governor.isAbandoned("a", now: 9.9) && governor.isAbandoned("a", now: 10) == shortens)
            silent.shortenWait(to: nil)
            #expect(silent.nextEnd == 30)
            #expect(!governor.isAbandoned("a", now: 29.9) && governor.isAbandoned("a", now: 30))
            // Never longer than usual.
            silent.shortenWait(to: 50)
            #expect(governor.isAbandoned("a", now: 30))
            governor.didAnswer("a", nil, firstByte: 0.1, began: 1, running: 1, maxWait: 60, now: 31)
            #expect(silent.isEmpty && !governor.isAbandoned("a", now: 31))
        }
    }

    @Test("An answer in between begins the count anew, and other hosts are not concerned")
    func answersReset() {
        let governor = governor()
        for _ in 0..<5 {
            #expect(governor.didFail("a", Self.refused, wasReached: false, began: 0, now: 0) != .host)
            #expect(governor.didFail("a", Self.refused, wasReached: false, began: 0, now: 0) != .host)
            governor.didAnswer("a", Self.status(404), firstByte: nil, began: 0, running: 1, maxWait: 60, now: 0)
        }
        #expect(governor.mayBegin("a", rate: nil, running: 0, waiting: 1, now: 0))
        for _ in 0..<3 { _ = governor.didFail("b", Self.refused, wasReached: false, began: 0, now: 0) }
        #expect(!governor.mayBegin("b", rate: nil, running: 0, waiting: 1, now: 0))
        #expect(governor.mayBegin("a", rate: nil, running: 0, waiting: 1, now: 0))
    }

    @Test("429 and Retry-After hold the host back for as long as they say; of those on their way only the first counts")
    func busy() {
        let governor = governor()
        governor.didAnswer(
            "a", Self.status(429, retryAfter: 7), firstByte: nil, began: 0, running: 8, maxWait: 60, now: 1)
        governor.didAnswer(
            "a", Self.status(429, retryAfter: 50), firstByte: nil, began: 0.5, running: 7, maxWait: 60, now: 1.1)
        #expect(!governor.mayBegin("a", rate: nil, running: 0, waiting: 9, now: 7.9))
        #expect(governor.reason(for: "a", now: 7)?.text == "HTTP 429 (Retry-After)")
        #expect(governor.mayBegin("a", rate: nil, running: 3, waiting: 9, now: 8))
        // Half as many at once as before, and one more for each round that goes well.
        #expect(!governor.mayBegin("a", rate: nil, running: 4, waiting: 9, now: 8))
        for _ in 0..<5 { governor.didAnswer("a", nil, firstByte: 0.1, began: 8, running: 4, maxWait: 60, now: 9) }
        #expect(governor.mayBegin("a", rate: nil, running: 4, waiting: 9, now: 9))
        // A longer wait than allowed is shortened, and without one they double.
        governor.didAnswer(
            "a", Self.status(429, retryAfter: 5000), firstByte: nil, began: 9, running: 1, maxWait: 60, now: 10)
        #expect(
            !governor.mayBegin("a", rate: nil, running: 0, waiting: 9, now: 69)
                && governor.mayBegin("a", rate: nil, running: 0, waiting: 9, now: 70))
        governor.didAnswer("b", Self.status(429), firstByte: nil, began: 0, running: 1, maxWait: 60, now: 0)
        #expect(
            !governor.mayBegin("b", rate: nil, running: 0, waiting: 9, now: 0.9)
                && governor.mayBegin("b", rate: nil, running: 0, waiting: 9, now: 1))
        governor.didAnswer("b", Self.status(429), firstByte: nil, began: 1, running: 1, maxWait: 60, now: 1)
        #expect(
            !governor.mayBegin("b", rate: nil, running: 0, waiting: 9, now: 2.9)
                && governor.mayBegin("b", rate: nil, running: 0, waiting: 9, now: 3))
    }

    @Test("A single 503 is one URL's trouble, three in a row are the host's; other statuses are none")
    func unavailable() {
        let governor = governor()
        for status in [503, 200, 503, 503, 500, 502, 404, 503, 503] {
            governor.didAnswer(
                "a", status == 200 ? nil : Self.status(status), firstByte: nil, began: 0, running: 1, maxWait: 60,
                now: 0)
        }
        #expect(governor.mayBegin("a", rate: nil, running: 0, waiting: 1, now: 0))
        governor.didAnswer("a", Self.status(503), firstByte: nil, began: 0, running: 1, maxWait: 60, now: 0)
        #expect(!governor.mayBegin("a", rate: nil, running: 0, waiting: 1, now: 0.5))
    }

    @Test("Pauses double to a minute after 429, and to 8 s after 503, which may be all that is left of a host")
    func longestPauses() {
        for (status, longest) in [(429, 60.0), (503, 8.0)] {
            let governor = governor()
            var now = 0.0
            for _ in 0..<12 {
                governor.didAnswer(
                    "a", Self.status(status), firstByte: nil, began: now, running: 1, maxWait: 60, now: now)
                now += governor.reason(for: "a", now: now)?.remaining ?? 0
            }
            governor.didAnswer(
                "a", Self.status(status), firstByte: nil, began: now, running: 1, maxWait: 60, now: now)
            #expect(governor.reason(for: "a", now: now)?.remaining == longest)
        }
    }

    @Test(
        "What others say of a slow host counts once, until its own answers say otherwise; one told by itself is told again later"
    )
    func othersLatency() throws {
        let (outageReporter, hearer) = (governor(isShared: true), governor(isShared: true))
        for _ in 0..<10 {
            outageReporter.didAnswer("a", nil, firstByte: 0.1, began: 0, running: 32, maxWait: 60, now: 0)
        }
        #expect(isSilent(outageReporter))
        for _ in 0..<100 {
            outageReporter.didAnswer("a", nil, firstByte: 3, began: 0, running: 32, maxWait: 60, now: 1)
        }
        let news = outageReporter.takeMessages { _, _ in 0 }.news
        let told = try #require(news.first)
        #expect(news.count == 1 && told.state == .slow && told.until == 31 && (2..<32).contains(told.failures))
        #expect(told.latency?.best == 0.1)
        // As narrow as before it is no news for a while, and is told again then.
        for _ in 0..<300 {
            outageReporter.didAnswer("a", nil, firstByte: 3, began: 1, running: 32, maxWait: 60, now: 2)
        }
        let narrowest = try #require(outageReporter.takeMessages { _, _ in 0 }.news.first)
        #expect(narrowest.failures == 2)
        for _ in 0..<50 { outageReporter.didAnswer("a", nil, firstByte: 3, began: 1, running: 2, maxWait: 60, now: 3) }
        #expect(isSilent(outageReporter))
        outageReporter.didAnswer("a", nil, firstByte: 3, began: 1, running: 2, maxWait: 60, now: 18)
        #expect(outageReporter.takeMessages { _, _ in 0 }.news.map(\.until) == [48])

        hearer.adopt([narrowest], now: 3)
        #expect(hearer.mayBegin("a", rate: nil, running: 1, waiting: 9, now: 3))
        #expect(!hearer.mayBegin("a", rate: nil, running: 2, waiting: 9, now: 3))
        #expect(hearer.reason(for: "a", now: 3)?.text == "at most 2 at once for now")
        #expect(isSilent(hearer))
        // Its own answers are fast: more at once, whatever was said before.
        for _ in 0..<40 { hearer.didAnswer("a", nil, firstByte: 0.1, began: 3, running: 2, maxWait: 60, now: 4) }
        #expect(hearer.mayBegin("a", rate: nil, running: 20, waiting: 9, now: 4))
        hearer.adopt([narrowest], now: 5)
        #expect(hearer.mayBegin("a", rate: nil, running: 20, waiting: 9, now: 5))
        var late = narrowest
        late.until = 40
        hearer.adopt([late], now: 41)
        #expect(hearer.mayBegin("a", rate: nil, running: 20, waiting: 9, now: 41))
    }

    @Test("With a new policy what is known of hosts stays, and how they are treated changes")
    func renewed() {
        let governor = governor()
        governor.didAnswer(
            "a", Self.status(429, retryAfter: 7), firstByte: nil, began: 0, running: 8, maxWait: 60, now: 1)
        var policy = HostPolicy()
        policy.backsOff = true
        governor.renew(policy)
        #expect(governor.nextWake == .infinity)
        #expect(!governor.mayBegin("a", rate: 1, running: 0, waiting: 9, now: 7.9))
        #expect(governor.mayBegin("b", rate: 1, running: 0, waiting: 9, now: 2))
        #expect(!governor.mayBegin("b", rate: 1, running: 1, waiting: 9, now: 2.5))
        for _ in 0..<20 { #expect(governor.didFail("c", Self.refused, wasReached: false, began: 2, now: 2) != .host) }
        governor.renew(policy)
        #expect(governor.mayBegin("b", rate: nil, running: 1, waiting: 9, now: 2.6))
    }

    @Test("A host that grows slow is asked by fewer at once, one that is always slow is not")
    func latency() {
        let governor = governor()
        for _ in 0..<100 {
            governor.didAnswer("slow", nil, firstByte: 3, began: 0, running: 32, maxWait: 60, now: 0)
        }
        #expect(governor.mayBegin("slow", rate: nil, running: 32, waiting: 1, now: 0))
        for _ in 0..<10 { governor.didAnswer("a", nil, firstByte: 0.1, began: 0, running: 32, maxWait: 60, now: 0) }
        for _ in 0..<100 { governor.didAnswer("a", nil, firstByte: 3, began: 0, running: 32, maxWait: 60, now: 1) }
        #expect(!governor.mayBegin("a", rate: nil, running: 20, waiting: 1, now: 1))
        #expect(governor.mayBegin("a", rate: nil, running: 1, waiting: 1, now: 1))
        for _ in 0..<200 { governor.didAnswer("a", nil, firstByte: 0.1, began: 1, running: 2, maxWait: 60, now: 2) }
        #expect(governor.mayBegin("a", rate: nil, running: 32, waiting: 1, now: 2))
    }

    @Test("What one finds out is told to others, whose back-off begins and ends with it")
    func news() throws {
        let (first, second) = (governor(isShared: true), governor(isShared: true))
        for _ in 0..<3 { _ = first.didFail("a", Self.refused, wasReached: false, began: 0, now: 0) }
        first.didAnswer(
            "b", Self.status(503, retryAfter: 9), firstByte: nil, began: 0, running: 2, maxWait: 60, now: 0)
        let news = first.takeMessages { _, _ in 0 }.news
        #expect(Set(news.map(\.host)) == ["a", "b"])
        second.adopt(news, now: 0)
        #expect(!second.mayBegin("a", rate: nil, running: 0, waiting: 1, now: 0.5))
        #expect(!second.mayBegin("b", rate: nil, running: 0, waiting: 1, now: 8.5))
        #expect(isSilent(second))
        #expect(second.mayBegin("a", rate: nil, running: 0, waiting: 1, now: 1.5))
        second.didAnswer("a", nil, firstByte: 0.1, began: 1.5, running: 1, maxWait: 60, now: 1.6)
        #expect(second.takeMessages { _, _ in 0 }.news.map(\.state) == [.good])
        first.adopt(news.filter { $0.host == "b" }, now: 1.7)
        #expect(first.nextDue(now: 1.7) != nil)
        #expect(first.mayBegin("a", rate: nil, running: 1, waiting: 1, now: 1.7))
        #expect(!first.mayBegin("b", rate: nil, running: 0, waiting: 1, now: 1.7))
    }

    @Test("URLs of a host that is given up end with the failure that made it so, whatever its probes end with")
    func cause() {
        let governor = governor(waitLimit: 5)
        let noName = WebImageError(.cannotFindHost, "no such name", isTransient: true)
        for _ in 0..<3 { _ = governor.didFail("h", noName, wasReached: false, began: 0, now: 1) }
        #expect(governor.mayBegin("h", rate: nil, running: 0, waiting: 1, now: 2.5))
        let noByte = WebImageError(.timedOut, "no byte", isTransient: true)
        _ = governor.didFail("h", noByte, wasReached: true, began: 2.5, now: 7)
        let refusal = governor.refusal(of: "h", arrivedAt: 0, wasTried: false, triesLeft: nil, now: 7.5)
        #expect(
            refusal?.code == .cannotFindHost && refusal?.message == "the host has given no answer for 6 s: no such name"
        )
        // What another process has found out stays the cause, too.
        let news = HostReport(host: "n", state: .silent, until: 9, since: 0, failures: 10, error: noName)
        governor.adopt([news], now: 1)
        _ = governor.mayBegin("n", rate: nil, running: 0, waiting: 1, now: 9.5)
        _ = governor.didFail("n", noByte, wasReached: true, began: 9.5, now: 10)
        #expect(
            governor.refusal(of: "n", arrivedAt: 0, wasTried: false, triesLeft: nil, now: 10.5)?.code
                == .cannotFindHost)
    }

    @Test(
        "Where connections are made and no answer comes, a URL that was not asked ends with the third probe since it came"
    )
    func reached() {
        let governor = governor(waitLimit: 5)
        let noAnswer = WebImageError(.timedOut, "no header line for 2 s", isTransient: true)
        func refuses(_ arrivedAt: Double, wasTried: Bool = false, at now: Double) -> Bool {
            governor.refusal(of: "a", arrivedAt: arrivedAt, wasTried: wasTried, triesLeft: nil, now: now) != nil
        }
        for _ in 0..<3 { _ = governor.didFail("a", noAnswer, wasReached: true, began: 0, now: 2) }
        var begins: [Double] = []
        for _ in 0..<8 {
            var now = begins.last.map { $0 + 2 } ?? 2
            while !governor.mayBegin("a", rate: nil, running: 0, waiting: 9, now: now) { now += 0.125 }
            begins.append(now)
            _ = governor.didFail("a", noAnswer, wasReached: true, began: now, now: now + 2)
        }
        // 2 s for the probe, then 2, 4, 8, 8 … s.
        #expect(zip(begins, begins.dropFirst()).map { ($1 - $0 - 2).rounded() } == [2, 4, 8, 8, 8, 8, 8])
        let now = begins[7] + 2
        #expect(governor.isAbandoned("a", now: now))
        #expect(refuses(begins[7], wasTried: true, at: now))
        #expect(!refuses(begins[7], at: now) && !refuses(begins[5] + 0.5, at: now) && refuses(begins[5], at: now))
        // One probe that finds nobody to connect to, and all end as before.
        #expect(governor.mayBegin("a", rate: nil, running: 0, waiting: 9, now: now + 9))
        _ = governor.didFail("a", Self.refused, wasReached: false, began: now + 9, now: now + 9.5)
        #expect(refuses(now + 9.25, at: now + 9.5))
    }

    @Test("A URL that gets no answer while its host answers others says nothing of the host, now or later")
    func silentURL() {
        let governor = governor()
        let noAnswer = WebImageError(.timedOut, "no header line for 2 s", isTransient: true)
        func fails(began: Double, isKnown: Bool = false, wasReached: Bool = true) -> HostGovernor.Blame {
            governor.didFail(
                "a", noAnswer, wasReached: wasReached, isKnown: isKnown, began: began, now: began + 2)
        }
        governor.didAnswer("a", nil, firstByte: 0.1, began: 0, running: 9, maxWait: 60, now: 1)
        for _ in 0..<20 { #expect(fails(began: 0.9) == .url) }
        for _ in 0..<20 { #expect(fails(began: 5, isKnown: true) == .url) }
        #expect(fails(began: 0.9, wasReached: false) == .unknown)
        #expect(fails(began: 1.5) == .unknown)
        // The third that began since its last answer.
        #expect(fails(began: 1.5) == .host)
        #expect(fails(began: 0.9) == .host && fails(began: 5, isKnown: true) == .host)
    }

    @Test("Who has had an answer since others had none says so instead of leaving the host alone")
    func knowsBetter() {
        let (first, second, third) = (governor(isShared: true), governor(isShared: true), governor(isShared: true))
        third.didAnswer("a", nil, firstByte: 0.1, began: 0, running: 1, maxWait: 60, now: 0.5)
        for _ in 0..<3 { _ = first.didFail("a", Self.refused, wasReached: false, began: 0, now: 1) }
        second.didAnswer("a", nil, firstByte: 0.1, began: 0.5, running: 1, maxWait: 60, now: 1.5)
        let news = first.takeMessages { _, _ in 0 }.news
        for governor in [second, third] { governor.adopt(news, now: 1.6) }
        #expect(second.mayBegin("a", rate: nil, running: 1, waiting: 1, now: 1.6))
        #expect(second.takeMessages { _, _ in 0 }.news.map(\.state) == [.good])
        #expect(!third.mayBegin("a", rate: nil, running: 1, waiting: 1, now: 1.6))
        #expect(isSilent(third))
    }
}
