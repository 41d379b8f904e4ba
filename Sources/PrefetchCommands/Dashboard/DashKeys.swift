internal import Prefetch
internal import WebImage

/// The effect of a key outside of the screen's state.
enum DashEffect: Sendable, Equatable {
    case none
    case quit
    case reread
    case cancel(String)
    case retry(String)
    case pause(QueueControl.PauseTarget)
    case resume(QueueControl.PauseTarget)
    case prioritise(String, PrefetchPriority)
    /// Take a URL off the list of failed ones.
    case unlist(String)
    case copy(String)
    case save
}

/// The table of keys, the only source of footer, help and actions.
struct DashKey: Sendable {
    var keys: [TerminalKey]
    /// Name in help and footer.
    var label: String
    var help: String
    /// A word for the footer; nil: not in the footer.
    var footer: String?
    /// Whether it changes the queue: disabled by `--readonly`.
    var changes = false
    /// The key alone, for the footer.
    var sign: String { String(label.prefix { $0 != " " }) }
    var act: @Sendable (inout DashState) -> DashEffect

    static let all: [DashKey] = [
        DashKey(keys: [.tab, .right], label: "1-5 Tab", help: "view; Shift-Tab and arrows too") { $0.turn(by: 1) },
        DashKey(keys: [.backTab, .left], label: "", help: "") { $0.turn(by: -1) },
        DashKey(keys: [.character("j"), .down], label: "j k", help: "row; up and down too") {
            $0.move(to: $0.cursor + 1)
        },
        DashKey(keys: [.character("k"), .up], label: "", help: "") { $0.move(to: $0.cursor - 1) },
        DashKey(keys: [.character("g"), .home], label: "g G", help: "first, last row; PgUp PgDn a page") {
            $0.move(to: 0)
        },
        DashKey(keys: [.character("G"), .end], label: "", help: "") { $0.move(to: .max) },
        DashKey(keys: [.pageDown], label: "", help: "") { $0.move(to: $0.cursor + 10) },
        DashKey(keys: [.pageUp], label: "", help: "") { $0.move(to: $0.cursor - 10) },
        DashKey(keys: [.enter], label: "Enter", help: "open the row: a batch, a cause") { $0.openRow() },
        DashKey(keys: [.escape], label: "Esc", help: "back; takes the filter away") { $0.goBack() },
        DashKey(keys: [.character("]")], label: "[ ]", help: "newer, older batch") { $0.turnBatch(by: 1) },
        DashKey(keys: [.character("[")], label: "", help: "") { $0.turnBatch(by: -1) },
        DashKey(
            keys: [.character("p")], label: "p P", help: "pause or resume: batch (in 2: worker); P: queue",
            footer: "pause", changes: true
        ) {
            $0.togglePause()
        },
        DashKey(keys: [.character("P")], label: "", help: "", changes: true) {
            $0.toggleQueue()
        },
        DashKey(keys: [.character("<")], label: "< >", help: "lower, higher priority", changes: true) {
            $0.prioritise(by: 1)
        },
        DashKey(keys: [.character(">")], label: "", help: "", changes: true) { $0.prioritise(by: -1) },
        DashKey(
            keys: [.character("r")], label: "r", help: "retry what this batch skipped", footer: "retry", changes: true
        ) {
            $0.askRetry()
        },
        DashKey(keys: [.character("x")], label: "x", help: "cancel this batch", footer: "cancel", changes: true) {
            $0.askCancel()
        },
        DashKey(
            keys: [.character("b")], label: "b", help: "take the URL off the list of failed ones", changes: true
        ) {
            $0.unlistRow()
        },
        DashKey(keys: [.character("/")], label: "/", help: "filter rows; !text leaves them out", footer: "filter") {
            state in
            state.isEditingFilter = true
            return .none
        },
        DashKey(keys: [.character("s")], label: "s S", help: "next order of the rows, reverse") { state in
            state.sortIndexes[state.view, default: 0] += 1
            let keys = state.view.sortKeys
            state.notice = "by \(keys[(state.sortIndexes[state.view] ?? 0) % keys.count])"
            return .none
        },
        DashKey(keys: [.character("S")], label: "", help: "") { state in
            state.isReversed.toggle()
            return .none
        },
        DashKey(keys: [.character("+"), .character("=")], label: "+ -", help: "slower, faster") { $0.pace(by: 2) },
        DashKey(keys: [.character("-")], label: "", help: "") { $0.pace(by: 0.5) },
        DashKey(keys: [.character(" ")], label: "Space", help: "freeze the screen") { state in
            state.isFrozen.toggle()
            state.notice = state.isFrozen ? "frozen; Space continues" : nil
            return state.isFrozen ? .none : .reread
        },
        DashKey(keys: [.character("y")], label: "y", help: "copy the row's URL or name") { $0.copyRow() },
        DashKey(keys: [.character("w")], label: "w", help: "write the screen into a file") { _ in .save },
        DashKey(keys: [.control("l")], label: "Ctrl-L", help: "read and draw again") { _ in .reread },
        DashKey(keys: [.character("?"), .character("h")], label: "?", help: "this help", footer: "help") { state in
            state.isHelpShown.toggle()
            state.helpStart = 0
            return .none
        },
        DashKey(keys: [.character("q")], label: "q", help: "quit; the batch continues", footer: "quit") { _ in .quit },
    ]

    static func table(isReadOnly: Bool) -> [DashKey] { all.filter { !isReadOnly || !$0.changes } }
}

extension DashState {
    mutating func press(_ key: TerminalKey) -> DashEffect {
        notice = nil
        if let question {
            self.question = nil
            if key == .character("y") || key == .character("Y") { return question.effect }
            notice = "nothing was changed"
            return .none
        }
        if isEditingFilter {
            edit(key)
            return .none
        }
        if case .character(let digit) = key, let number = digit.wholeNumberValue, let view = DashView(rawValue: number)
        {
            self.view = view
            isHelpShown = false
            return .reread
        }
        guard let entry = DashKey.table(isReadOnly: isReadOnly).first(where: { $0.keys.contains(key) }) else {
            return .none
        }
        return entry.act(&self)
    }

    private mutating func edit(_ key: TerminalKey) {
        switch key {
        case .enter: isEditingFilter = false
        case .escape: (isEditingFilter, filter) = (false, "")
        case .backspace: filter = String(filter.dropLast())
        case .character(let character): if filter.count < 100 { filter.append(character) }
        default: break
        }
        cursors[view] = 0
    }

    fileprivate mutating func turn(by step: Int) -> DashEffect {
        let count = DashView.allCases.count
        view = DashView(rawValue: (view.rawValue - 1 + step + count) % count + 1) ?? .batch
        isHelpShown = false
        return .reread
    }

    fileprivate mutating func move(to row: Int) -> DashEffect {
        if isHelpShown {
            helpStart = max(0, min(DashKey.all.count, row == .max ? .max : helpStart + row - cursor))
            return .none
        }
        cursors[view] = min(max(0, row), max(0, rowCount - 1))
        return .none
    }

    fileprivate mutating func openRow() -> DashEffect {
        switch view {
        case .batch:
            guard queue.batches.indices.contains(cursor) else { return .none }
            show(queue.batches[cursor].id)
            return .reread
        case .failures:
            guard cause == nil, causes.indices.contains(cursor) else { return .none }
            cause = causes[cursor].name
            cursors[view] = 0
            return .reread
        default: return .none
        }
    }

    fileprivate mutating func goBack() -> DashEffect {
        if isHelpShown {
            isHelpShown = false
        } else if !filter.isEmpty {
            filter = ""
        } else if cause != nil {
            cause = nil
            cursors[view] = 0
        }
        return .none
    }

    fileprivate mutating func turnBatch(by step: Int) -> DashEffect {
        guard let index = queue.batches.firstIndex(where: { $0.id == id }) else { return .none }
        let next = index + step
        guard queue.batches.indices.contains(next) else {
            notice = step > 0 ? "there is no older batch here" : "there is no newer batch"
            return .none
        }
        show(queue.batches[next].id)
        cursors[.batch] = next
        return .reread
    }

    fileprivate mutating func askCancel() -> DashEffect {
        guard let status = snapshot?.status, status.state == .running else {
            notice = "only a running batch can be cancelled"
            return .none
        }
        let open = Wording.count(status.total - status.counts.finished)
        question = Question(text: "cancel \(status.id) with \(open) URLs open? y/N", effect: .cancel(status.id))
        return .none
    }

    fileprivate mutating func askRetry() -> DashEffect {
        guard let status = snapshot?.status, status.state != .running, status.counts.skipped > 0 else {
            notice =
                snapshot?.status.state == .running
                ? "a batch that runs cannot be retried yet" : "there is nothing to retry"
            return .none
        }
        let text = "retry \(Wording.count(status.counts.skipped, "skipped URL")) of \(status.id) as a new batch? y/N"
        question = Question(text: text, effect: .retry(status.id))
        return .none
    }

    fileprivate mutating func togglePause() -> DashEffect {
        if view == .workers {
            guard workerRows.indices.contains(cursor), workerRows[cursor].isPresent else {
                notice = "only a worker that is there can be paused"
                return .none
            }
            let row = workerRows[cursor]
            return row.report.isPaused ? .resume(.worker(row.name)) : .pause(.worker(row.name))
        }
        guard let status = snapshot?.status, status.state == .running else {
            notice = "only a running batch can be paused"
            return .none
        }
        return status.isPaused ? .resume(.batch(status.id)) : .pause(.batch(status.id))
    }

    fileprivate mutating func toggleQueue() -> DashEffect {
        // The newer of the two readings: the queue's is up to two seconds old.
        snapshot?.status.isQueuePaused ?? queue.settings.isPaused ? .resume(.queue) : .pause(.queue)
    }

    fileprivate mutating func prioritise(by step: Int) -> DashEffect {
        guard let status = snapshot?.status, status.state == .running else {
            notice = "only a running batch has its turns"
            return .none
        }
        let all = PrefetchPriority.allCases
        let next = (all.firstIndex(of: status.priority) ?? 0) + step
        guard all.indices.contains(next) else {
            notice = "\(status.id) has priority \(status.priority.rawValue) already"
            return .none
        }
        return .prioritise(status.id, all[next])
    }

    fileprivate mutating func unlistRow() -> DashEffect {
        guard view == .failures, cause != nil, openFailures.indices.contains(cursor) else {
            notice = "choose a URL: 3, Enter on a cause, then b"
            return .none
        }
        return .unlist(openFailures[cursor].url)
    }

    fileprivate mutating func pace(by factor: Double) -> DashEffect {
        refresh = min(60, max(0.2, refresh * factor))
        notice = "every \(Wording.decimal(refresh, digits: refresh < 1 ? 2 : 1)) s"
        return .reread
    }

    fileprivate mutating func copyRow() -> DashEffect {
        let text: String? =
            switch view {
            case .batch: id
            case .workers: workerRows.indices.contains(cursor) ? workerRows[cursor].name : nil
            case .failures:
                cause == nil
                    ? (causes.indices.contains(cursor) ? causes[cursor].name : nil)
                    : (openFailures.indices.contains(cursor) ? openFailures[cursor].url : nil)
            case .hosts: hostRows.indices.contains(cursor) ? hostRows[cursor].name : nil
            case .log: logLines.indices.contains(cursor) ? logLines[cursor].text : nil
            }
        guard let text else { return .none }
        notice = "copied"
        return .copy(text)
    }
}
