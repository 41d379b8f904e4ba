internal import FoundationEssentials
internal import Glibc
internal import WebImage

/// Finds running prefetch programs with a secret on their command line, where every user of the machine can read it (proc_pid_cmdline(5)).
enum CommandLineDiagnostics {
    static func findings() -> [Finding] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return names.compactMap { Int32($0) }.sorted().compactMap { pid in
            // Its size is unknown before it is read.
            guard let file = fopen("/proc/\(pid)/cmdline", "re") else { return nil }
            defer { fclose(file) }
            var bytes = [UInt8](repeating: 0, count: 1 << 17)
            bytes.removeLast(bytes.count - fread(&bytes, 1, bytes.count, file))
            let words = bytes.split(separator: 0, omittingEmptySubsequences: false).map {
                String(decoding: $0, as: UTF8.self)
            }
            return finding(words, pid: pid)
        }
    }

    /// Nil without a secret.
    static func finding(_ words: [String], pid: Int32) -> Finding? {
        let program = words.first?.split(separator: "/").last.map { String($0) } ?? ""
        guard program.hasPrefix("prefetch-") else { return nil }
        let shown = secretOptions(words.dropFirst())
        guard !shown.isEmpty else { return nil }
        let remedies = shown.map { $0 == "--redis" ? "--redis-password-file FILE" : "\($0) @FILE" }
        return Finding(
            .warn, "secrets",
            "\(program) \(pid) shows what \(shown.joined(separator: ", ")) has to everybody on this machine",
            remedy: "write it into a file: \(remedies.joined(separator: ", "))")
    }

    /// Options with a literal secret, each once.
    static func secretOptions(_ words: ArraySlice<String>) -> [String] {
        var shown: [String] = []
        for (word, next) in zip(words, words.dropFirst() + [""]) {
            let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let isJoined = word.hasPrefix("--") && parts.count == 2
            let option = isJoined ? String(parts[0]) : word
            let value = isJoined ? String(parts[1]) : next
            let isSecret =
                switch option {
                case "--user", "--bearer": !value.hasPrefix("@")
                case "-H", "--header": isSecret(header: value)
                case "--header-rule": isSecret(header: String(value.drop { $0 != "=" }.dropFirst()))
                case "--proxy", "--redis": URLRedaction.url(value) != value
                default: false
                }
            let name = option == "-H" ? "--header" : option
            if isSecret, !shown.contains(name) { shown.append(name) }
        }
        return shown
    }

    private static func isSecret(header: String) -> Bool {
        guard !header.hasPrefix("@"), let colon = header.firstIndex(of: ":") else { return false }
        return !HTTPHeader(String(header[..<colon]), "").isSafeAcrossSites
    }
}
