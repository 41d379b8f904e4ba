internal import Redis

extension BatchCheck {
    /// Of a batch that was submitted open: its lists follow each other without a gap and have as many URLs and lines as it says; of one
    /// that is over, that no deadline is left. Lists only become more, so those that were added since the snapshot are passed over.
    func lists(_ snapshot: BatchSnapshot) async throws(RedisError) -> [Finding] {
        var found: [Finding] = []
        func tell(_ invariant: String, _ message: String) {
            found.append(Finding(batch: batch, invariant: invariant, message: message))
        }
        if snapshot.fields["state"]?.string != "running" {
            let score = try await queue.read([["ZSCORE", RedisArgument(queue.keys.deadlines), RedisArgument(batch)]])
            if try !score[0].get().isNull { tell("I3", "it is over, and its deadline is left") }
        }
        guard snapshot.fields["open"]?.string == "1" else { return found }
        let total = snapshot.fields["total"]?.int ?? 0
        let lines = snapshot.fields["lines"]?.int ?? 0
        var (urls, line) = (0, 0)
        for segment in try await queue.lists(of: batch)
        where segment.end <= total && segment.line + segment.lines <= lines {
            if segment.base != urls || segment.line != line {
                tell(
                    "I2",
                    "list \(segment.number + 1) begins at URL \(segment.base) and line \(segment.line), those before it end at "
                        + "\(urls) and \(line)")
            }
            (urls, line) = (segment.end, segment.line + segment.lines)
        }
        if urls != total { tell("I2", "its lists have \(urls) URLs, but the total is \(total)") }
        if snapshot.number("pushed") > total { tell("I2", "more URLs are pushed than its lists have") }
        return found
    }
}
