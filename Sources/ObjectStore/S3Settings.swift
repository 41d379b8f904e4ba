internal import Glibc
internal import WebImage

/// How a store is reached: from the variables and files of the AWS tools, in their order. Keys of machines, containers and single sign-on are not
/// asked for.
package struct S3Settings: Sendable {
    package var accessKey: String
    package var secretKey: String
    /// Of keys that are lent for a time.
    package var sessionToken: String?
    package var region = "us-east-1"
    /// With its scheme, and without a slash at its end; nil: AWS.
    package var endpoint: String?
    /// Of certificate authorities; nil: those that libcurl was built with.
    package var caFile: String?

    /// What is read of the environment: the names, of which the first that is set counts, and what each is.
    package static let variables: [(names: [String], meaning: String)] = [
        (accessKeyNames, "the access key of the object store, for `--out s3://`; otherwise the profile has it"),
        (secretKeyNames, "its secret key"), (tokenNames, "its session token, if it is lent for a time"),
        (profileNames, "a profile of `~/.aws/credentials` and `~/.aws/config`, by default `default`"),
        (regionNames, "the region of the bucket, by default the profile's, or `us-east-1`"),
        (endpointNames, "the address of the store, by default the profile's, or AWS"),
        (ignoringNames, "`true`: AWS, whatever other address is set"),
        (authorityNames, "a file of certificate authorities for the store"),
        (keyFileNames, "the file that has keys, in place of `~/.aws/credentials`"),
        (configFileNames, "the file that has regions and addresses, in place of `~/.aws/config`"),
    ]
    /// Those of them that are no address and no name.
    package static let secretVariables = secretKeyNames + tokenNames
    private static let accessKeyNames = ["AWS_ACCESS_KEY_ID"], secretKeyNames = ["AWS_SECRET_ACCESS_KEY"]
    private static let tokenNames = ["AWS_SESSION_TOKEN"], profileNames = ["AWS_PROFILE", "AWS_DEFAULT_PROFILE"]
    private static let regionNames = ["AWS_REGION", "AWS_DEFAULT_REGION"]
    private static let endpointNames = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]
    private static let ignoringNames = ["AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"]
    private static let authorityNames = ["AWS_CA_BUNDLE"]
    private static let keyFileNames = ["AWS_SHARED_CREDENTIALS_FILE"], configFileNames = ["AWS_CONFIG_FILE"]

    init(accessKey: String, secretKey: String) { (self.accessKey, self.secretKey) = (accessKey, secretKey) }

    /// - Parameters:
    ///   - variable: of the environment.
    ///   - file: the bytes of a file; nil if there is none.
    /// - Throws: `configuration` without keys, and for a profile or an endpoint that cannot be used.
    package init(
        variable: (String) -> String?, file: (String) -> [UInt8]?
    ) throws(S3Error) {
        func known(_ names: [String]) -> String? { names.lazy.compactMap(variable).first { !$0.isEmpty } }
        let home = known(["HOME"]) ?? ""
        func path(_ names: [String]) -> String? {
            known(names).map { $0.startsWithBytes(of: "~/") ? home + $0.dropFirst() : $0 }
        }
        let profile = known(Self.profileNames)
        let keys = AWSProfiles(file(path(Self.keyFileNames) ?? "\(home)/.aws/credentials") ?? [])
        let rest = AWSProfiles(file(path(Self.configFileNames) ?? "\(home)/.aws/config") ?? [])
        let name = profile ?? "default"
        if let profile, !keys.has(profile), !rest.has(profile) {
            throw S3Error(
                .configuration, "there is no profile \(profile.debugDescription) in the files of AWS",
                hint: "AWS_PROFILE names it; aws configure list-profiles shows those that there are")
        }
        func setting(_ key: String) -> String? { keys.value(key, of: name) ?? rest.value(key, of: name) }
        if (known(Self.accessKeyNames) == nil) != (known(Self.secretKeyNames) == nil) {
            throw S3Error(
                .configuration, "there is one of the two keys for the object store, and not the other",
                hint: "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or neither")
        }
        if let access = known(Self.accessKeyNames), let secret = known(Self.secretKeyNames) {
            self.init(accessKey: access, secretKey: secret)
            sessionToken = known(Self.tokenNames)
        } else if let access = setting("aws_access_key_id"), let secret = setting("aws_secret_access_key") {
            self.init(accessKey: access, secretKey: secret)
            sessionToken = setting("aws_session_token")
        } else {
            throw S3Error(
                .configuration, "there are no keys for the object store",
                hint: "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or: "
                    + "eval \"$(aws configure export-credentials --format env)\"")
        }
        region = known(Self.regionNames) ?? setting("region") ?? region
        let services = setting("services").flatMap { rest.value("s3.endpoint_url", of: "services \($0)") }
        endpoint = known(Self.endpointNames) ?? services ?? setting("endpoint_url")
        if known(Self.ignoringNames)?.asciiLowercased == "true" { endpoint = nil }
        caFile = known(Self.authorityNames) ?? setting("ca_bundle") ?? TrustedAuthorities.file
        try check()
    }

    /// What would end up in a header or an address as something else.
    private mutating func check() throws(S3Error) {
        for (name, value) in [
            ("access key", accessKey), ("secret key", secretKey), ("session token", sessionToken ?? "-"),
            ("region", region),
        ] where value.isEmpty || !value.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) {
            throw S3Error(.configuration, "the \(name) of the object store is no word of ASCII")
        }
        guard let given = endpoint else { return }
        guard let url = try? RequestURL(given), !url.target.contains("?"), url.user == nil else {
            throw S3Error(
                .configuration, "\(given.debugDescription) is no address of an object store",
                hint: "AWS_ENDPOINT_URL is one such as https://s3.example.com")
        }
        var text = url.text
        while text.hasSuffix("/") { text.removeLast() }
        endpoint = text
    }

    /// The address of a bucket, without a slash at its end: its own host at AWS, a path elsewhere, as boto3 chooses.
    func address(of bucket: String) -> String {
        if let endpoint { return "\(endpoint)/\(bucket)" }
        let domain = "s3.\(region).amazonaws.com" + (region.hasPrefix("cn-") ? ".cn" : "")
        // A dot would be a further level, which the certificate does not cover; hosts have no capitals and underscores.
        let isHost = bucket.utf8.allSatisfy {
            (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
                || $0 == UInt8(ascii: "-")
        }
        return isHost ? "https://\(bucket).\(domain)" : "https://\(domain)/\(bucket)"
    }
}

/// A file of AWS: `[profile NAME]`, `[services NAME]` or `[NAME]`, and `key = value` below. Lines that are indented belong to a key without a
/// value: they are `key.name` here.
private struct AWSProfiles {
    private var values: [ByteText: [ByteText: String]] = [:]

    init(_ bytes: [UInt8]) {
        var section: ByteText?
        var outer = ""
        for line in bytes.split(whereSeparator: { $0 == 10 || $0 == 13 }) {
            let text = String(decoding: line, as: UTF8.self)
            guard let first = text.unicodeScalars.first, first != "#", first != ";" else { continue }
            if first == "[" {
                let name = text.dropFirst().prefix { $0 != "]" }
                let words = name.split(separator: " ", maxSplits: 1)
                let own = (words.count == 2 && words[0] == "profile" ? words[1] : name).trimmingBlanks
                let isQuoted = own.utf8.count > 1 && own.hasPrefix("\"") && own.hasSuffix("\"")
                section = ByteText(isQuoted ? String(own.dropFirst().dropLast()) : own)
                if let section, values[section] == nil { values[section] = [:] }
            } else if let section, let equals = text.firstIndex(of: "=") {
                let isInner = first == " " || first == "\t"
                let key = text[..<equals].trimmingBlanks.asciiLowercased
                let value = text[text.index(after: equals)...].trimmingBlanks
                if !isInner { outer = value.isEmpty ? "\(key)." : "" }
                values[section]?[ByteText(isInner ? outer + key : key)] = value
            }
        }
    }

    func has(_ profile: String) -> Bool { values[ByteText(profile)] != nil }

    func value(_ key: String, of profile: String) -> String? {
        values[ByteText(profile)]?[ByteText(key)].flatMap { $0.isEmpty ? nil : $0 }
    }
}

extension Substring {
    fileprivate var trimmingBlanks: String {
        var text = self[...]
        while let first = text.first, first == " " || first == "\t" { text.removeFirst() }
        while let last = text.last, last == " " || last == "\t" { text.removeLast() }
        return String(text)
    }
}
