internal import Redis

extension BatchRepair {
    /// Records of URLs that were not skipped go, and a skipped URL without one gets one that says nothing but that.
    ///
    /// * `total`: URLs of the list.
    func mendRecords(_ total: Int) async throws(PrefetchError) {
        let (dropped, made) = try await redis { () async throws(RedisError) in
            var names = (0..<((total + FailureRecord.chunk - 1) / FailureRecord.chunk)).map { String($0) }
            let known = Set(names)
            names += try await queue.recordNames(of: batch).filter { !known.contains($0) }
            var (dropped, made) = (0, 0)
            for start in stride(from: 0, to: names.count, by: 64) {
                let part = Array(names[start..<min(start + 64, names.count)])
                let numbers = try await queue.mendRecords(batch, token: token, chunks: part)
                dropped += numbers.dropped
                made += numbers.made
            }
            return (dropped, made)
        }
        if dropped > 0 { tell("\(batch): \(dropped) records were damaged, or of URLs that were not skipped") }
        if made > 0 { tell("\(batch): \(made) skipped URLs had no record: their status, tries and time are not known") }
    }
}
