internal import WebImage

extension BatchCheck {
    /// I7: every URL that was skipped has one record, and no other URL has one.
    func records(_ snapshot: BatchSnapshot) -> [Finding] {
        var (damaged, strangers, missing) = (0, 0, 0)
        var first: Int?
        let chunks = (snapshot.outcomes.count + FailureRecord.chunk - 1) / FailureRecord.chunk
        for name in snapshot.records.keys where Int(name).map({ !(0..<chunks).contains($0) }) ?? true { strangers += 1 }
        for chunk in 0..<chunks {
            let start = chunk * FailureRecord.chunk
            let codes = snapshot.outcomes[start..<min(start + FailureRecord.chunk, snapshot.outcomes.count)]
            let bytes = snapshot.records[String(chunk)] ?? []
            guard !bytes.isEmpty || codes.contains(where: { $0 > 3 }) else { continue }
            let (records, isSound) = FailureRecord.decode(bytes)
            if !isSound { damaged += 1 }
            for position in records.keys where position >= codes.count || codes[start + position] <= 3 {
                strangers += 1
            }
            for (index, code) in zip(codes.indices, codes) where code > 3 && records[index - start] == nil {
                missing += 1
                first = first ?? index
            }
        }
        var found: [Finding] = []
        if damaged > 0 { found.append(finding("I7", "\(damaged) chunks of records are damaged")) }
        if strangers > 0 { found.append(finding("I7", "\(strangers) records are of URLs that were not skipped")) }
        if let first {
            found.append(finding("I7", "\(missing) skipped URLs have no record, the first has the index \(first)"))
        }
        return found
    }
}
