internal import ArgumentParser
internal import FoundationEssentials
internal import Prefetch

struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Check this machine, its cache and its Redis.",
        usage: "prefetch-coord doctor [<options>]",
        discussion: """
            Examples:
              prefetch-coord doctor
              prefetch-coord doctor --redis redis://host:6379/0 --json | jq .ok
              prefetch-coord doctor --settings

            Prints what was checked, the result (ok, warn, fail) and what to do about it.
            It contacts Redis only and leaves nothing behind. Exit code 1 if a check fails.
            --settings checks nothing and prints no password.
            """)

    @Flag(help: "Print the effective settings and where each comes from instead.")
    var settings = false

    @Flag(help: "Print one JSON object.")
    var json = false

    @OptionGroup(title: "Redis") var location: SettingOptions<RedisLocation>

    func run() async throws {
        let environment = ProcessInfo.processInfo.environment
        if settings {
            return try Settings(location.record, environment).sheet.print(asJSON: json)
        }
        let isNamed =
            location.redis != nil
            || ["PREFETCH_REDIS_URL", "REDIS_URL"].contains { environment[$0]?.isEmpty == false }
        var findings = MachineDiagnostics.findings()
        findings += CacheDiagnostics(folder: location.cacheFolder ?? "./cache").findings()
        findings += StateText.findings(location.stateFolder)
        findings += CommandLineDiagnostics.findings()
        findings += await RedisDiagnostics(location: location.record, isNamed: isNamed).findings()
        let answer = DoctorAnswer(findings: findings)
        var sheet = Sheet(answer)
        sheet.add(findings.flatMap(\.lines))
        if !answer.isWell { sheet.exitCode = 1 }
        try sheet.print(asJSON: json)
    }
}

struct DoctorAnswer: Record {
    let findings: [Finding]

    var isWell: Bool { !findings.contains { $0.level == .fail } }

    static let fields: [Field<DoctorAnswer>] = [.version, Field("ok", \.isWell), Field("findings", \.findings)]
}
