import ArgumentParser
import Prefetch
import Testing
import WebImage

@testable import PrefetchCommands

@Suite("Open networks", .timeLimit(.minutes(5)))
struct OpenNetworkTests {
    private func networks(_ words: [String], _ variable: String?) throws -> [CIDR] {
        try FetchWords.parse(words).record.complete(variable.map { ["PREFETCH_ALLOW_NET": $0] } ?? [:]).addressPolicy
            .allow
    }

    @Test("PREFETCH_ALLOW_NET opens networks beside --allow-net, between commas or blanks")
    func both() throws {
        let given = ["10.0.0.0/8", "172.31.0.0/16", "[::1]:80", "127.0.0.1:8080"]
        #expect(
            try networks(["--allow-net", "10.0.0.0/8"], "172.31.0.0/16, [::1]:80 127.0.0.1:8080,")
                == given.compactMap { CIDR($0) })
        #expect(try networks(["--allow-net", "10.0.0.0/8"], nil).count == 1)
        #expect(try networks([], "").isEmpty)
    }

    @Test("PREFETCH_DENY_NET closes networks beside --deny-net, and what is no network is named")
    func closed() throws {
        let options = try FetchWords.parse(["--deny-net", "10.0.0.5", "--deny-net", "[fd00::/8]:80"]).record
        let given = ["10.0.0.5", "[fd00::/8]:80", "10.1.0.0/16:9090"]
        let policy = try options.complete(["PREFETCH_DENY_NET": "10.1.0.0/16:9090"]).addressPolicy
        #expect(policy == AddressPolicy(deny: given.compactMap { CIDR($0) }))
        let error = #expect(throws: PrefetchError.self) { try options.complete(["PREFETCH_DENY_NET": "redis"]) }
        #expect(error?.kind == .configuration && error?.message.contains("PREFETCH_DENY_NET") == true)
    }

    @Test("What is no network is named, and nothing is opened", arguments: ["everything", "10.0.0.0/8,10.0.0.0/33"])
    func wrong(variable: String) throws {
        #expect {
            try networks([], variable)
        } throws: { error in
            guard let error = error as? PrefetchError else { return false }
            return error.kind == .configuration && error.message.contains("PREFETCH_ALLOW_NET")
                && !error.message.contains("10.0.0.0/8")
        }
    }
}
