internal import CLinux
internal import Glibc
import Origin

/// nginx with TLS and HTTP/2 on a free port, in a folder of its own; ended with its last owner.
final class NginxServer: Sendable {
    struct Failure: Error { var what: String }

    static var isInstalled: Bool { access("/usr/sbin/nginx", X_OK) == 0 && access("/usr/bin/openssl", X_OK) == 0 }

    let port: Int
    /// The certificate it shows, which is its own authority.
    let certificate: String
    /// Its key.
    let key: String
    private let folder: String
    private let process: pid_t

    /// `names` is what the certificate is for (`IP:127.0.0.1`); an expired one ended in 2020; `protocols` is nginx's `ssl_protocols`.
    /// One that asks for a certificate takes its own from a client.
    init(
        names: String = "IP:127.0.0.1", isExpired: Bool = false, protocols: String = "TLSv1.2 TLSv1.3",
        asksForCertificate: Bool = false
    ) throws {
        var template = Array("/tmp/nginx-XXXXXX".utf8CString)
        let folder = template.withUnsafeMutableBufferPointer { String(cString: mkdtemp($0.baseAddress!)) }
        self.folder = folder
        certificate = "\(folder)/cert.pem"
        key = "\(folder)/key.pem"
        try Self.makeCertificate(in: folder, names: names, isExpired: isExpired)
        // Free a moment ago; nginx binds it before the next one asks.
        port = try OriginServer().port
        let client = asksForCertificate ? "ssl_verify_client on; ssl_client_certificate \(certificate);" : ""
        Self.write(
            Self.configuration(folder: folder, port: port, protocols: protocols, client: client),
            to: "\(folder)/nginx.conf")
        process = try Self.start([
            "/usr/sbin/nginx", "-c", "\(folder)/nginx.conf", "-p", folder, "-e", "\(folder)/error.log",
        ])
        // Its pid file is written after the port is bound.
        while access("\(folder)/nginx.pid", R_OK) != 0 {
            guard kill(process, 0) == 0, waitpid(process, nil, WNOHANG) == 0 else {
                throw Failure(what: "nginx has ended")
            }
            usleep(2000)
        }
    }

    deinit {
        kill(process, SIGQUIT)
        kill(process, SIGTERM)
        waitpid(process, nil, 0)
        _ = try? Self.run(["/bin/rm", "-rf", folder])
    }

    func url(_ path: String, host: String = "127.0.0.1") -> String { "https://\(host):\(port)\(path)" }

    private static func configuration(folder: String, port: Int, protocols: String, client: String) -> String {
        """
        daemon off; worker_processes 1; pid \(folder)/nginx.pid; error_log \(folder)/error.log;
        events { worker_connections 256; }
        http {
            access_log off; default_type image/jpeg;
            client_body_temp_path \(folder)/1; proxy_temp_path \(folder)/2; fastcgi_temp_path \(folder)/3;
            uwsgi_temp_path \(folder)/4; scgi_temp_path \(folder)/5;
            server {
                listen 127.0.0.1:\(port) ssl http2;
                ssl_certificate \(folder)/cert.pem; ssl_certificate_key \(folder)/key.pem;
                ssl_protocols \(protocols); ssl_ciphers ALL:@SECLEVEL=0; \(client)
                location /down { return 302 http://127.0.0.1:1/; }
                location / { add_header ETag $connection; return 200 "body of $uri"; }
            }
        }
        """
    }

    private static func makeCertificate(in folder: String, names: String, isExpired: Bool) throws {
        let new = [
            "/usr/bin/openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj",
            "/CN=test", "-keyout", "\(folder)/key.pem",
        ]
        guard isExpired else {
            return try run(
                new + ["-x509", "-days", "2", "-addext", "subjectAltName=\(names)", "-out", "\(folder)/cert.pem"])
        }
        try run(new + ["-out", "\(folder)/request.pem"])
        write("", to: "\(folder)/index.txt")
        write("01", to: "\(folder)/serial")
        write(
            """
            [ca]
            default_ca = d
            [d]
            database = \(folder)/index.txt
            serial = \(folder)/serial
            new_certs_dir = \(folder)
            default_md = sha256
            policy = p
            x509_extensions = e
            [p]
            commonName = supplied
            [e]
            subjectAltName = \(names)
            """, to: "\(folder)/ca.conf")
        try run([
            "/usr/bin/openssl", "ca", "-batch", "-notext", "-selfsign", "-config", "\(folder)/ca.conf", "-keyfile",
            "\(folder)/key.pem", "-in", "\(folder)/request.pem", "-startdate", "20200101000000Z", "-enddate",
            "20200102000000Z", "-out", "\(folder)/cert.pem",
        ])
    }

    private static func write(_ text: String, to path: String) {
        guard let file = fopen(path, "w") else { preconditionFailure("cannot write \(path)") }
        fputs(text, file)
        fclose(file)
    }

    private static func run(_ arguments: [String]) throws {
        var status: Int32 = 0
        waitpid(try start(arguments), &status, 0)
        guard clinux_wexited(status) == 1, clinux_wexitstatus(status) == 0 else {
            throw Failure(what: arguments.joined(separator: " "))
        }
    }

    private static func start(_ arguments: [String]) throws -> pid_t {
        var argv = arguments.map { strdup($0) } + [nil]
        defer { for argument in argv { free(argument) } }
        var environment: [UnsafeMutablePointer<CChar>?] = [nil]
        // No death signal: it would follow the test's thread.
        let process = clinux_spawn(arguments[0], &argv, &environment, [-1, -1, -1], [-1, -1], -1, 0, 0)
        guard process > 0 else { throw Failure(what: "cannot start \(arguments[0])") }
        return process
    }
}
