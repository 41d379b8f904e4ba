internal import CLinux
internal import Glibc
internal import Prefetch
internal import Redis
internal import Threading

/// Runs the dashboard: keys, signals and readings are handled one after the other, and each may draw a new frame.
struct DashLoop: Sendable {
    private enum Event: Sendable {
        case key(TerminalKey)
        case signal(Int32)
        case reading(DashReading)
        case away(String)
        case said(String)
        case terminalGone
    }

    let session: Session
    let terminal: DashTerminal
    let isColoured: Bool
    let clock: @Sendable (Int) -> String
    let glyphs: DashGlyphs

    /// Runs until the user quits. Returns the signal that ended it, nil for a key, and the last state.
    func run(_ start: DashState) async -> (signal: Int32?, state: DashState) {
        let (events, post) = AsyncStream.makeStream(of: Event.self)
        guard let input = DashInput() else { return (nil, start) }
        let wish = Locked(DashReader.ReadingRequest(id: start.id))
        let pace = Locked(start.refresh)
        let bell = WakeSignal()
        TerminalSignals.install { post.yield(.signal($0)) }
        Console.holdNotes()
        terminal.enter()
        defer {
            terminal.leave()
            Console.releaseNotes(behind: "")
        }
        return await withTaskGroup(of: Void.self) { group in
            group.addTask { if !(await input.run { post.yield(.key($0)) }) { post.yield(.terminalGone) } }
            group.addTask { await read(wish, pace, bell, post) }
            defer {
                input.stop()
                group.cancelAll()
                session.queue.connection.interrupt()
            }
            var state = start
            draw(state)
            for await event in events {
                switch event {
                case .key(let key):
                    let effect = state.press(key)
                    if effect == .quit { return (nil, state) }
                    perform(effect, &state, bell, post, &group)
                case .signal(SIGWINCH): break
                case .signal(SIGTSTP):
                    terminal.leave()
                    _ = clinux_stop_self()
                    terminal.enter()
                case .signal(SIGCONT):
                    // Stopped by another process: the shell has used the terminal meanwhile.
                    terminal.leave()
                    terminal.enter()
                case .signal(let number): return (number, state)
                case .terminalGone: return (SIGHUP, state)
                case .said(let text):
                    state.notice = text
                    state.note(state.snapshot?.at ?? 0, .info, text)
                    bell.ring()
                case .away(let reason): state.lose(reason)
                case .reading(let reading):
                    // Not drawn again either: a frozen screen can be selected and copied.
                    if state.isFrozen { continue }
                    state.take(reading)
                }
                for note in Console.takeNotes() { state.note(state.snapshot?.at ?? 0, .info, note) }
                let current = state
                wish.withLock {
                    $0 = DashReader.ReadingRequest(
                        id: current.id, wantsFailures: current.view == .failures, ended: Set(current.ends.keys))
                }
                pace.withLock { $0 = current.refresh }
                draw(state)
            }
            return (nil, state)
        }
    }

    private func draw(_ state: DashState) {
        let size = terminal.size
        let frame = DashFrame(state: state, columns: size.columns, rows: size.rows, glyphs: glyphs, clock: clock)
        terminal.draw(frame.lines(), isColoured: isColoured)
    }

    private func read(
        _ wish: Locked<DashReader.ReadingRequest>, _ pace: Locked<Double>, _ bell: WakeSignal,
        _ post: AsyncStream<Event>.Continuation
    ) async {
        let reader = DashReader(session.queue)
        while !Task.isCancelled {
            do throws(RedisError) {
                post.yield(.reading(try await reader.read(wish.withLock { $0 })))
            } catch {
                if Task.isCancelled { return }
                post.yield(.away(error.message))
            }
            await bell.wait(atMost: .seconds(pace.withLock { $0 }))
        }
    }

    private func perform(
        _ effect: DashEffect, _ state: inout DashState, _ bell: WakeSignal, _ post: AsyncStream<Event>.Continuation,
        _ group: inout TaskGroup<Void>
    ) {
        let queue = session.queue
        func said(_ body: @escaping @Sendable () async throws(RedisError) -> String) {
            group.addTask {
                do throws(RedisError) {
                    post.yield(.said(try await body()))
                } catch {
                    post.yield(.said("that could not be done: \(error.message)"))
                }
            }
        }
        switch effect {
        case .none, .quit: break
        case .reread: bell.ring()
        case .copy(let text): terminal.copy(text)
        case .save: state.notice = save(state)
        case .pause(let target):
            said { () async throws(RedisError) in
                Self.text(try await queue.control.pause(target), of: target, "is paused; what is in flight ends")
            }
        case .resume(let target):
            said { () async throws(RedisError) in
                Self.text(try await queue.control.resume(target), of: target, "continues")
            }
        case .prioritise(let id, let priority):
            said { () async throws(RedisError) in
                switch try await queue.control.change(id, ["priority": [priority.rawValue]]) {
                case .changed(_, let now): "\(id) has priority \(now.turn.priority.rawValue)"
                case .over(let state): "\(id) is \(state) already"
                case .gone: "\(id) is gone"
                }
            }
        case .unlist(let url):
            said { () async throws(RedisError) in
                try await queue.failedURLs.remove([url]) == 1
                    ? "removed from the blacklist" : "it is not on the blacklist"
            }
        case .cancel(let id):
            state.notice = "cancelling \(id)"
            said { () async throws(RedisError) in
                _ = try await queue.batches.cancel(batch: id)
                return "\(id) was cancelled"
            }
        case .retry(let id):
            state.notice = "retrying \(id)"
            group.addTask { post.yield(.said(await retry(id, queue))) }
        }
    }

    /// * `done`: what follows the name where it was done.
    private static func text(
        _ result: QueueControl.PauseResult, of target: QueueControl.PauseTarget, _ done: String
    ) -> String {
        let name = PauseArguments.name(target)
        return switch result {
        case .done: "\(name) \(done)"
        case .over(let state): "\(name) is \(state) already"
        case .gone: "\(name) is gone"
        }
    }

    private func retry(_ id: String, _ queue: PrefetchQueue) async -> String {
        do throws(PrefetchError) {
            let retry = BatchRetry(queue: queue, feeding: queue, name: id)
            switch try await retry.open(joinsRunning: false) {
            case .nothing: return "nothing to retry: every line has an image"
            case .batch(let batch):
                _ = try await batch.feed { _ in }
                return "\(batch.id) has what \(id) skipped; [ goes there"
            }
        } catch {
            return error.message
        }
    }

    /// Writes the screen to a file of the current folder; returns the message.
    private func save(_ state: DashState) -> String {
        let size = terminal.size
        let frame = DashFrame(state: state, columns: size.columns, rows: size.rows, glyphs: glyphs, clock: clock)
        let text = frame.lines().map { $0.text + "\n" }.joined()
        let name = "prefetch-dash-\(UTCTime.text(seconds: time(nil)).filter { $0.isNumber || $0 == "T" }).txt"
        let file = clinux_open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
        guard file >= 0 else { return "cannot write \(name): \(String(cString: strerror(errno)))" }
        defer { close(file) }
        let bytes = Array(text.utf8)
        return write(file, bytes, bytes.count) == bytes.count ? "written to \(name)" : "cannot write all of \(name)"
    }
}
