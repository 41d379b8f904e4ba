/// One URL of a running batch that has not ended, and what it waits for.
package struct OpenURL: Sendable, Equatable {
    /// What it waits for.
    package enum State: String, Sendable, CaseIterable {
        /// Its bytes come.
        case transferring
        /// Its connection is silent; it holds no slot of its worker.
        case stalled
        /// It waits for a slot of its host.
        case waitingForHost
        /// It waits until one of its worker's transfers ends.
        case waitingForSlot
        /// It pauses before its next try.
        case retrying
        /// Another process transfers an image of the same key.
        case locked
        /// Its bytes are with the decoder, or wait for a thread there.
        case verifying
        /// A worker has it and has not begun.
        case claimed
        /// Its worker is paused by a local fault.
        case paused
        /// Its worker gives no sign of life; others take it over when its lease has run out.
        case workerSilent
        /// It waits in Redis for a worker.
        case queued
        /// It stands in the list and is not in Redis yet.
        case notPushed
    }

    /// Index in the batch, from 0.
    package var index: Int
    /// Line of the list; nil where it is not known here.
    package var line: Int?
    /// The URL as it stands in the list; nil where it is not known here.
    package var url: String?
    /// The host it waits for, after redirects.
    package var host: String?
    /// Tries begun; 0 where none was.
    package var attempt = 0
    package var state: State
    /// Why the last try failed, what is broken, how many are not pushed; empty where there is nothing to say.
    package var detail = ""
    /// Milliseconds since 1970 by the clock of Redis: when this began, and when it ends, where that is known.
    package var since: Int?, until: Int?
    /// The worker that has it.
    package var worker: String?

    package init(
        index: Int, line: Int? = nil, url: String? = nil, state: State, since: Int? = nil, until: Int? = nil
    ) {
        (self.index, self.line, self.url, self.state) = (index, line, url, state)
        (self.since, self.until) = (since, until)
    }
}
