internal import Redis
internal import WebImage

/// What a report says for dashboards beside its outcomes: how many answers had which HTTP status, and what came of its hosts, the
/// biggest 16 of them. Redis counts it where every URL of the report is new, so a report that is sent again counts once; what is not
/// counted shows as "other".
struct ReportTally {
    /// The most hosts of one report.
    static let mostHosts = 16

    private struct Host {
        var finished = 0, skipped = 0, bytes = 0
    }

    private var count = 0
    private var statuses: [Int: Int] = [:]
    private var hosts: [String: Host] = [:]

    /// * `entries`: the URLs of the job, by position.
    init(_ settled: [PrefetchQueue.Settled], of entries: [PrefetchJob.Entry]) {
        for item in settled {
            count += 1
            if item.outcome == .httpError, let status = item.failure?.httpStatus, (100..<600).contains(status) {
                statuses[status, default: 0] += 1
            }
            guard item.position < entries.count, let name = Self.host(of: entries[item.position].url) else { continue }
            var host = hosts[name] ?? Host()
            host.finished += 1
            if item.outcome.isSkipped { host.skipped += 1 }
            host.bytes += item.bytes
            hosts[name] = host
        }
    }

    /// A line with the number of URLs, then `404 3` for statuses and `host finished skipped bytes`.
    var encoded: String {
        var text = "\(count)\n"
        for (status, count) in statuses.sorted(by: { $0.key < $1.key }) { text += "\(status) \(count)\n" }
        let biggest = hosts.sorted { ($0.value.finished, $1.key) > ($1.value.finished, $0.key) }
        for (name, host) in biggest.prefix(Self.mostHosts) {
            text += "\(name) \(host.finished) \(host.skipped) \(host.bytes)\n"
        }
        return text
    }

    /// Host and port of a URL in small letters; nil where there is none, or none that is plain ASCII.
    static func host(of url: String) -> String? {
        let bytes = Array(url.utf8)
        guard let scheme = bytes.firstIndex(of: UInt8(ascii: ":")), bytes[scheme...].starts(with: "://".utf8) else {
            return nil
        }
        var authority = bytes[(scheme + 3)...].prefix {
            $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#")
        }
        if let at = authority.lastIndex(of: UInt8(ascii: "@")) { authority = authority[(at + 1)...] }
        guard (1...260).contains(authority.count), authority.allSatisfy({ (0x21..<0x7F).contains($0) }) else {
            return nil
        }
        return String(decoding: authority.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
    }
}

extension PrefetchQueue {
    // For REPORT: adds a ReportTally to the batch, `h404` … beside its counts and up to 256 hosts. Cost: three commands, and one a status.
    static let tallying = #"""
        local function tally(id, new, text)
          local count, rest = text:match('^(%d+)\n(.*)$')
          if tonumber(count) ~= new then return end
          local names, more, fields = {}, {}, {}
          for line in rest:gmatch('[^\n]+') do
            local status, n = line:match('^(%d%d%d) (%d+)$')
            local host, finished, skipped, bytes = line:match('^(%S+) (%d+) (%d+) (%d+)$')
            if status then
              redis.call('HINCRBY', batch(id), 'h' .. status, n)
            elseif host then
              names[#names + 1] = host
              more[#names] = {finished, skipped, bytes}
            end
          end
          if #names == 0 then return end
          local known = redis.call('HMGET', hosts(id), unpack(names))
          local room = 256 - redis.call('HLEN', hosts(id))
          for i, name in ipairs(names) do
            local was = {(known[i] or '0 0 0'):match('^(%d+) (%d+) (%d+)$')}
            if known[i] or room > 0 then
              if not known[i] then room = room - 1 end
              for j = 1, 3 do was[j] = string.format('%.0f', was[j] + more[i][j]) end
              fields[#fields + 1] = name
              fields[#fields + 1] = table.concat(was, ' ')
            end
          end
          if #fields > 0 then redis.call('HSET', hosts(id), unpack(fields)) end
        end

        """#
}
