internal import ArgumentParser
internal import WebImage
internal import PrefetchCommands

/// `prefetch-origin manifest`: prints the expected outcomes of the misbehaving origin's URLs.
struct ManifestCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "manifest",
        abstract: "Print the URLs of misbehave with their expected outcomes.",
        discussion: """
            Examples:
              prefetch-origin manifest --count 2000
              prefetch-origin manifest | cut -f 2 > urls.txt

            One line per URL, in the order of the list, separated by tabs: line number, URL,
            outcome, SHA-256 or -. An image that is in the cache already ends as hit.
            """)

    @OptionGroup var plan: DemoPlanOptions

    func run() async throws {
        let plan = plan.plan
        for (index, (entry, body)) in zip(plan.entries, await DemoOrigin.bodies(plan)).enumerated() {
            let digest = body.map { SHA256.hash($0).hex } ?? "-"
            Console.print("\(index + 1)\t\(entry.url)\t\(entry.behaviour.outcome.name)\t\(digest)")
        }
    }
}
