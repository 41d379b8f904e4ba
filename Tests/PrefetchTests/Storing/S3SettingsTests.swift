import PrefetchModel
import TestSupport
import Testing

@testable import ObjectStore

@Suite("How an object store is reached")
struct S3SettingsTests {
    private static let keys = ["AWS_ACCESS_KEY_ID": "AK", "AWS_SECRET_ACCESS_KEY": "SK", "HOME": "/home/u"]

    private func settings(
        _ variables: [String: String], _ files: [String: String] = [:]
    ) throws(S3Error) -> S3Settings {
        try S3Settings(variable: { variables[$0] }, file: { files[$0].map { Array($0.utf8) } })
    }

    private func message(_ variables: [String: String], _ files: [String: String] = [:]) -> String? {
        do throws(S3Error) {
            _ = try settings(variables, files)
            return nil
        } catch {
            return error.kind == .configuration ? error.message : "\(error)"
        }
    }

    @Test("Variables come before the profile's files, keys before those of another place as a whole")
    func order() throws {
        let files = [
            "/home/u/.aws/credentials": """
            # of the tests
            [default]
            aws_access_key_id = FILE
            aws_secret_access_key=fileSecret
            [lab]
            aws_access_key_id = LAB
            aws_secret_access_key = lab/Secret=
            aws_session_token = lent
            """,
            "/home/u/.aws/config": """
            [default]
            region = eu-central-1
            s3 =
              endpoint_url = http://ignored
            [services local]
            s3 =
              endpoint_url = http://127.0.0.1:9002
            [profile "with services"]
            services = local
            aws_access_key_id = W
            aws_secret_access_key = w
            \r
            [profile lab]\r
            region=eu-north-1\r
            endpoint_url = https://s3.example.com/base/\r
            ca_bundle = /ca.pem\r
            """,
        ]
        let byFile = try settings(["HOME": "/home/u"], files)
        #expect((byFile.accessKey, byFile.secretKey, byFile.region) == ("FILE", "fileSecret", "eu-central-1"))
        #expect(byFile.endpoint == nil && byFile.sessionToken == nil)
        let lab = try settings(["HOME": "/home/u", "AWS_PROFILE": "lab"], files)
        #expect((lab.accessKey, lab.secretKey, lab.sessionToken) == ("LAB", "lab/Secret=", "lent"))
        #expect((lab.region, lab.endpoint, lab.caFile) == ("eu-north-1", "https://s3.example.com/base", "/ca.pem"))
        var variables = Self.keys
        variables["AWS_PROFILE"] = "lab"
        variables["AWS_REGION"] = "us-west-2"
        variables["AWS_ENDPOINT_URL"] = "http://127.0.0.1:9000"
        let mixed = try settings(variables, files)
        #expect((mixed.accessKey, mixed.secretKey, mixed.sessionToken) == ("AK", "SK", nil))
        #expect((mixed.region, mixed.endpoint) == ("us-west-2", "http://127.0.0.1:9000"))
        variables["AWS_ENDPOINT_URL_S3"] = "http://127.0.0.1:9001/"
        #expect(try settings(variables, files).endpoint == "http://127.0.0.1:9001")
        #expect(try settings(Self.keys).region == "us-east-1")
        let services = try settings(["HOME": "/home/u", "AWS_PROFILE": "with services"], files)
        #expect((services.accessKey, services.endpoint) == ("W", "http://127.0.0.1:9002"))
        let ignoring = try settings(
            ["HOME": "/home/u", "AWS_PROFILE": "lab", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"], files)
        #expect(ignoring.endpoint == nil)
        let atHome = try settings(
            ["HOME": "/h", "AWS_SHARED_CREDENTIALS_FILE": "~/k"],
            ["/h/k": "[default]\naws_access_key_id=A\naws_secret_access_key=B"])
        #expect(atHome.accessKey == "A")
        let moved = ["AWS_SHARED_CREDENTIALS_FILE": "/k", "AWS_CONFIG_FILE": "/c"]
        let elsewhere = try settings(
            moved, ["/k": "[default]\naws_access_key_id=A\naws_secret_access_key=B", "/c": "[default]\nregion=x"])
        #expect((elsewhere.accessKey, elsewhere.region) == ("A", "x"))
    }

    @Test("What cannot be used is said before anything is asked")
    func refused() {
        #expect(message([:]) == "there are no keys for the object store")
        let one = "there is one of the two keys for the object store, and not the other"
        #expect(message(["AWS_ACCESS_KEY_ID": "AK"]) == one && message(["AWS_SECRET_ACCESS_KEY": "S"]) == one)
        var variables = Self.keys
        variables["AWS_PROFILE"] = "none"
        #expect(message(variables) == #"there is no profile "none" in the files of AWS"#)
        for endpoint in ["foo", "ftp://x", "http://u:p@x", "http://x/?a"] {
            variables = Self.keys
            variables["AWS_ENDPOINT_URL"] = endpoint
            #expect(message(variables) == "\"\(endpoint)\" is no address of an object store")
        }
        for (name, text) in [
            ("AWS_REGION", "region"), ("AWS_SECRET_ACCESS_KEY", "secret key"), ("AWS_ACCESS_KEY_ID", "access key"),
            ("AWS_SESSION_TOKEN", "session token"),
        ] {
            variables = Self.keys
            variables[name] = "a\r\nX-Header: b"
            #expect(message(variables) == "the \(text) of the object store is no word of ASCII")
        }
    }

    @Test("The address of a bucket is its own host at AWS, and a path elsewhere, as boto3 makes it")
    func addresses() throws {
        var settings = try settings(Self.keys)
        settings.region = "eu-central-1"
        for (bucket, address) in [
            ("images-1", "https://images-1.s3.eu-central-1.amazonaws.com"),
            ("a.dotted", "https://s3.eu-central-1.amazonaws.com/a.dotted"),
            ("Old_Name", "https://s3.eu-central-1.amazonaws.com/Old_Name"),
        ] {
            #expect(settings.address(of: bucket) == address)
        }
        settings.region = "cn-north-1"
        #expect(settings.address(of: "abc") == "https://abc.s3.cn-north-1.amazonaws.com.cn")
        settings.endpoint = "http://127.0.0.1:9000"
        #expect(settings.address(of: "abc") == "http://127.0.0.1:9000/abc")
    }

    @Test("An address names a bucket and a prefix")
    func location() throws {
        for (text, bucket, prefix, shown) in [
            ("s3://images", "images", "", "s3://images"), ("s3://images/", "images", "", "s3://images"),
            ("S3://a.b-c_D/x/y z/", "a.b-c_D", "x/y z/", "s3://a.b-c_D/x/y z"),
            ("s3://abc/e\u{301}%", "abc", "e\u{301}%/", "s3://abc/e\u{301}%"),
        ] {
            let location = try S3Location(text)
            #expect(location.bucket == bucket && location.prefix.hasBytes(of: prefix))
            #expect(location.text.hasBytes(of: shown) && location.key(of: "n").hasBytes(of: prefix + "n"))
        }
        let long = String(repeating: "p/", count: 480)
        #expect(try S3Location("s3://abc/\(long)").prefix == long)
        for text in [
            "s3://", "s3://ab", "s3://.ab", "s3://a b", "s3://ab\u{E9}", "s3:///x", "http://abc", "abc",
            "s3://abc//x", "s3://abc/.", "s3://abc/x/../y", "s3://abc/\n", "s3://abc/\(long)p",
            "s3://\(String(repeating: "b", count: 64))",
        ] {
            #expect(throws: S3Error.self, "\(text)") { try S3Location(text) }
        }
        #expect(S3Location.encoded("aZ09-._~/ +&=%\u{E9}") == "aZ09-._~%2F%20%2B%26%3D%25%C3%A9")
        #expect(S3Location.encoded("a/b c", keeping: UInt8(ascii: "/")) == "a/b%20c")
    }

    @Test("Answers are read by the names of their elements, however they are laid out")
    func answers() {
        let answer = S3Answer(
            Array(
                """
                <?xml version="1.0"?><R xmlns="x"><IsTruncated>true</IsTruncated>
                <Contents><Key>a/&amp;lt;&#34;</Key><ETag>&quot;e&quot;</ETag></Contents><Contents>
                <Key>b</Key></Contents><NextContinuationToken>a&lt;b&gt;+/=</NextContinuationToken><Open>
                """.utf8))
        #expect(answer.elements("Contents").map { $0.value("Key") } == ["a/&lt;\"", "b"])
        #expect(answer.elements("Contents").map { $0.value("ETag") } == ["\"e\"", nil])
        #expect(answer.value("NextContinuationToken") == "a<b>+/=" && answer.value("IsTruncated") == "true")
        #expect(answer.value("Open") == nil && answer.value("Code") == nil && answer.elements("Open").isEmpty)
        #expect(S3Answer([0xFF, 0x3C]).value("Key") == nil)
    }
}
