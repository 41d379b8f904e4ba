internal import ArgumentParser
internal import FoundationEssentials
internal import Prefetch

/// `prefetch-coord doctor`: whether everything is there that prefetch needs, and what to do where it is not.
struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Look whether this machine, its cache and its Redis have all that is needed.",
        usage: "prefetch-coord doctor [<options>]",
        discussion: """
            Examples:
              prefetch-coord doctor
              prefetch-coord doctor --redis redis://host:6379/0 --json | jq .ok
              prefetch-coord doctor --settings

            Each line says what was looked at, how it is (ok, warn, fail) and, behind an
            arrow, what to do. It asks nobody but Redis and leaves nothing behind.
            Exit code 1 where something fails. With --settings it looks at nothing; no
            password is told.
            """)

    @Flag(help: "The settings that hold and where each comes from, in place of an examination.")
    var settings = false

    @Flag(help: "One object of JSON.")
    var json = false

    @OptionGroup(title: "Where") var location: RedisLocation

    func run() async throws {
        let environment = ProcessInfo.processInfo.environment
        if settings {
            let settings = try Settings(location, environment)
            if json { Console.print(settings.object.text) } else { settings.lines.forEach(Console.print) }
            return
        }
        let isNamed =
            location.redis != nil
            || ["PREFETCH_REDIS_URL", "REDIS_URL"].contains { environment[$0]?.isEmpty == false }
        var findings = MachineExamination.findings()
        findings += CacheExamination(folder: location.cacheFolder ?? "./cache").findings()
        findings += CommandLineExamination.findings()
        findings += await RedisExamination(location: location, isNamed: isNamed).findings()
        let isWell = !findings.contains { $0.level == .fail }
        if json {
            Console.print(
                JSONText.object([
                    ("v", .int(1)), ("ok", .bool(isWell)), ("findings", .array(findings.map(\.object))),
                ]).text)
        } else {
            for line in findings.flatMap(\.lines) { Console.print(line) }
        }
        if !isWell { throw ExitCode(1) }
    }
}
