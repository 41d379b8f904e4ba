import TestSupport
import Testing

@testable import PrefetchCommands

@Suite("Checks of the machine")
struct MachineDiagnosticsTests {
    @Test("A table of connections that is nearly full, one with room, and none")
    func tracking() {
        let folder = TemporaryDirectory()
        func examine(_ count: String, _ most: String) -> Finding? {
            folder.write(Array(count.utf8), to: "nf_conntrack_count")
            folder.write(Array(most.utf8), to: "nf_conntrack_max")
            return MachineDiagnostics.tracking(folder.path(""))
        }
        #expect(MachineDiagnostics.tracking(folder.path("")) == nil)
        #expect(
            examine("1200\n", "262144\n")
                == Finding(.ok, "tracking", "connection tracking has 1,200 of 262,144 entries"))
        let full = examine("239972\n", "262144\n")
        #expect(full?.level == .warn && full?.remedy == "sysctl -w net.netfilter.nf_conntrack_max=1048576")
        #expect(full?.text.hasPrefix("connection tracking has 239,972 of 262,144 entries: when it is full, ") == true)
        #expect(examine("12\n", "0\n") == nil)
        #expect(examine("", "262144\n") == nil)
    }
}
