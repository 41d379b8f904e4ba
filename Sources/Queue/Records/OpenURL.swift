/// A URL of a running batch that has not ended, and why.
package struct OpenURL: Sendable, Equatable {
    package enum State: String, Sendable, CaseIterable {
        case transferring
        /// Its connection is silent; it holds no slot of its worker.
        case stalled
        case waitingForHost
        case waitingForSlot
        /// In back-off before its next try.
        case retrying
        /// Another process transfers an image of the same key.
        case locked
        /// Its bytes are being decoded, or wait for a decoder thread.
        case verifying
        case claimed
        /// Its worker is paused by a local fault.
        case paused
        /// Its worker sends no heartbeats; its jobs are reaped when its lease has expired.
        case workerSilent
        case queued
        /// In the list but not in Redis yet.
        case notPushed
    }

    /// Index in the batch, from 0.
    package var index: Int
    package var line: Int?
    package var url: String?
    /// The host it waits for, after redirects.
    package var host: String?
    package var tries = 0
    package var state: State
    /// Why the last try failed, the fault, or how many are not pushed; may be empty.
    package var detail = ""
    /// Milliseconds since 1970 by the clock of Redis: start of the state, and its end if known.
    package var since: Int?, until: Int?
    package var worker: String?

    package init(
        index: Int, line: Int? = nil, url: String? = nil, state: State, since: Int? = nil, until: Int? = nil
    ) {
        (self.index, self.line, self.url, self.state) = (index, line, url, state)
        (self.since, self.until) = (since, until)
    }
}
