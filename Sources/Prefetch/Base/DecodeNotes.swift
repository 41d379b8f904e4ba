internal import CLinux
internal import Glibc
internal import Threading

/// The batch of a run, and which URLs its workers have in a decoder, in memory (memfd_create(2)) that they share with their parent process: what
/// a worker has written there is there after its death, however it died.
///
/// The first place has the name of the batch, once the run has opened it. A place has one note in 32 words: its length in bytes, 0 if it is free, then its text, `job@nonce position worker`. Each worker has 64 places,
/// more than there are threads that decode; a note that finds none free, or is longer than a place, is not taken: then the URLs of its
/// worker are separated by splitting their jobs (`JobWork`).
package final class DecodeNotes: Sendable {
    /// A URL in a decoder.
    package struct Suspect: Sendable, Hashable {
        /// The name of its job's claim.
        package var claim: String
        /// Its position in the job.
        package var position: Int
        /// The name under which the worker has the claim: another one if it was lost, and joined again.
        package var worker: String

        package init(claim: String, position: Int, worker: String) {
            (self.claim, self.position, self.worker) = (claim, position, worker)
        }
    }

    private static let words = 32
    private static let places = 64

    /// Open as long as this object.
    package let descriptor: Int32
    private let memory: SharedCounters
    private let workers: Int

    /// - Throws: `software` if the kernel has no memory or descriptor for it.
    package init(workers: Int) throws(PrefetchError) {
        let count = Self.words + max(1, workers) * Self.places * Self.words
        let file = clinux_memory_file()
        guard file >= 0, ftruncate(file, off_t(count * 8)) == 0, let memory = SharedCounters(file, count: count) else {
            let reason = String(cString: strerror(errno))
            if file >= 0 { close(file) }
            throw PrefetchError(
                .software, "cannot share memory with the workers: \(reason)",
                hint: "the limit of open files may be reached: ulimit -n")
        }
        (descriptor, self.memory, self.workers) = (file, memory, max(1, workers))
    }

    deinit { close(descriptor) }

    /// The notes of a lost worker, which are removed.
    /// * `worker`: its number from 0.
    package func take(_ worker: Int) -> [Suspect] {
        guard (0..<workers).contains(worker) else { return [] }
        return (0..<Self.places).compactMap { place in
            let start = Self.start(worker) + place * Self.words
            defer { memory.set(start, 0) }
            guard let bytes = Self.text(memory, at: start) else { return nil }
            let parts = bytes.split(separator: UInt8(ascii: " "))
            guard parts.count == 3, let claim = String(validating: parts[0], as: UTF8.self),
                let position = String(validating: parts[1], as: UTF8.self).flatMap({ Int($0) }),
                let name = String(validating: parts[2], as: UTF8.self)
            else { return nil }
            return Suspect(claim: claim, position: position, worker: name)
        }
    }

    /// Says which batch the workers are for: until then they claim nothing.
    package func set(batch: String) { _ = Self.write(batch, to: memory, at: 0) }

    private static func start(_ worker: Int) -> Int { words + worker * places * words }

    /// The bytes at a place; nil if it is free. A worker that wrote it may have been out of its mind before it died.
    private static func text(_ memory: SharedCounters, at start: Int) -> [UInt8]? {
        let length = Int(memory[start])
        guard length > 0, length <= (words - 1) * 8 else { return nil }
        return (0..<length).map { UInt8(truncatingIfNeeded: memory[start + 1 + $0 / 8] >> ($0 % 8 * 8)) }
    }

    /// - Returns: false if the text is too long.
    private static func write(_ text: String, to memory: SharedCounters, at start: Int) -> Bool {
        var text = text
        return text.withUTF8 { bytes in
            guard bytes.count <= (words - 1) * 8 else { return false }
            for offset in stride(from: 0, to: bytes.count, by: 8) {
                let word = bytes[offset..<min(offset + 8, bytes.count)].reversed().reduce(Int64(0)) {
                    $0 << 8 | Int64($1)
                }
                memory.set(start + 1 + offset / 8, word)
            }
            // Last: a note is whole or not there.
            memory.set(start, Int64(bytes.count))
            return true
        }
    }

    /// The notes that one worker takes.
    package final class Writer: Sendable {
        private let memory: SharedCounters
        private let start: Int
        /// A bit for each free place.
        private let free = Locked(UInt64.max)

        /// Maps the notes of the parent process, and closes the descriptor; nil if there are none.
        /// * `worker`: the worker's number from 0.
        package init?(inherited descriptor: Int32, worker: Int) {
            guard descriptor > 2 else { return nil }
            defer { close(descriptor) }
            var status = stat()
            guard worker >= 0, fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
                Int(status.st_size) >= DecodeNotes.start(worker + 1) * 8,
                let memory = SharedCounters(descriptor, count: DecodeNotes.start(worker + 1))
            else { return nil }
            (self.memory, start) = (memory, DecodeNotes.start(worker))
        }

        /// The batch of the run; nil until it is opened.
        package var batch: String? {
            guard let bytes = DecodeNotes.text(memory, at: 0) else { return nil }
            return String(validating: bytes, as: UTF8.self)
        }

        /// Notes a URL that is about to be decoded.
        /// - Returns: what ``end(_:)`` takes.
        package func begin(_ suspect: Suspect) -> Int? {
            let found = free.withLock { free -> Int? in
                let place = free.trailingZeroBitCount
                guard place < places else { return nil }
                free &= ~(1 << place)
                return place
            }
            guard let place = found else { return nil }
            let text = "\(suspect.claim) \(suspect.position) \(suspect.worker)"
            guard DecodeNotes.write(text, to: memory, at: start + place * DecodeNotes.words) else {
                free.withLock { $0 |= 1 << place }
                return nil
            }
            return place
        }

        /// Removes a note.
        package func end(_ place: Int) {
            memory.set(start + place * DecodeNotes.words, 0)
            free.withLock { $0 |= 1 << place }
        }
    }
}
