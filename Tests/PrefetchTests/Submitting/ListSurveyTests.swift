import TestSupport
import Testing

@testable import Prefetch

@Suite("What a list holds")
struct ListSurveyTests {
    private let folder = TemporaryDirectory()

    @Test("Behind its bounds it counts on, and says what it does not know")
    func bounds() async throws {
        let lines = ["http://a/1", "http://a/2", "http://a/1", "http://b/1", "http://c/1", "http://c/1", "no url"]
        folder.write(Array(lines.joined(separator: "\n").utf8), to: "urls.txt")
        let list = BatchEntries(try URLList(path: folder.path("urls.txt")))
        let exact = try await ListSurvey(list, cache: nil, rule: .url)
        #expect(exact.urls == 6 && exact.invalid == 1 && exact.duplicates == 2 && exact.missing == 4)
        #expect(!exact.mayHaveMoreDuplicates && exact.urlsOfOtherHosts == 0)
        #expect(exact.hosts == [.init(name: "a", urls: 3), .init(name: "c", urls: 2), .init(name: "b", urls: 1)])
        let bounded = try await ListSurvey(list, cache: nil, rule: .url, remembering: 3, hosts: 2)
        #expect(bounded.urls == 6 && bounded.duplicates == 1 && bounded.mayHaveMoreDuplicates)
        #expect(bounded.hosts.map(\.name) == ["a", "b"] && bounded.urlsOfOtherHosts == 2)
    }
}
