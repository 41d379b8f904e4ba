import Foundation
import TestSupport
import Testing

/// What others than scrapers do to `metrics --listen`, over sockets of Python.
@Suite("Metrics over HTTP", .timeLimit(.minutes(5)))
struct MetricsServingTests {
    /// A server and what it says its address is.
    private func serve(
        _ b: RemoteBatch, on address: String = "127.0.0.1:0", limit: Int? = nil
    ) async throws -> (server: ChildProcess, port: Int) {
        let words = b.coordWords("metrics --listen '\(address)'")
        // What is inherited would count too.
        let alone = "for fd in /proc/self/fd/*; do fd=${fd##*/}; ((fd < 3)) || eval \"exec $fd>&-\"; done; "
        let server = try await b.shell("\(limit.map { alone + "ulimit -n \($0); " } ?? "")exec \(words)")
        try await until { server.stderr.contains("/metrics") }
        let match = try #require(server.stderr.firstMatch(of: /:([0-9]+)\/metrics/))
        return (server, try #require(Int(match.1)))
    }

    /// Runs a program that has `connect(host)` and `everything(socket)`.
    private func python(_ program: String, _ port: Int, _ more: String...) async throws -> String {
        let child = try await ChildProcess(
            "/usr/bin/env",
            [
                "python3", "-c",
                """
                import os, socket, sys, time
                port = int(sys.argv[1])
                def connect(host="127.0.0.1"):
                    return socket.create_connection((host, port), timeout=60)
                def everything(s):
                    said = b""
                    while part := s.recv(65536):
                        said += part
                    return said.decode()
                \(program)
                """, String(port),
            ] + more)
        #expect(await child.wait() == .exited(0), "\(child.stderr)")
        return child.stdout
    }

    @Test("Each request gets its one answer whole, whatever is sent before, with and behind it")
    func answers() async throws {
        let b = try await RemoteBatch()
        let (server, port) = try await serve(b)
        let said = try await python(
            #"""
            ask = "GET /healthz HTTP/1.1\r\nHost: h\r\n"
            def case(name, sent, half=False):
                s = connect()
                s.sendall(sent.encode())
                if half:
                    s.shutdown(socket.SHUT_WR)
                said = everything(s)
                head, _, body = said.partition("\r\n\r\n")
                assert "Connection: close" in head and f"Content-Length: {len(body)}\r\n" in head + "\r\n" or "HEAD" in sent, said
                assert ("Allow: GET, HEAD" in head) == (" 405 " in head), said
                print(f"{name}: {head.split(' ', 1)[1].splitlines()[0]}, {body.strip()}")
            case("plain", ask + "\r\n")
            case("half closed", ask + "\r\n", half=True)
            case("cut off", ask, half=True)
            case("pipelined", (ask + "\r\n") * 3)
            case("body", "POST /metrics HTTP/1.1\r\nContent-Length: 3000000\r\n\r\n" + "a" * 3000000)
            case("body of GET", ask + "Content-Length: 3000000\r\n\r\n" + "a" * 3000000)
            case("upgrade", ask + "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
            case("old", "GET /healthz HTTP/1.0\r\n\r\n")
            case("too new", "GET /healthz HTTP/2.0\r\n\r\n")
            case("of a proxy", "GET http://h/healthz HTTP/1.1\r\n\r\n")
            case("tunnel", "CONNECT h:80 HTTP/1.1\r\n\r\n")
            case("no method", "FETCH /healthz HTTP/1.1\r\n\r\n")
            case("long header", ask + "X: " + "a" * 9000 + "\r\n\r\n")
            case("long path", "GET /" + "a" * 9000 + " HTTP/1.1\r\n\r\n")
            case("many headers", ask + "X: a\r\n" * 3000 + "\r\n")
            case("endless blanks", ask + "X:" + " " * 300000)
            case("zero bytes", "\0" * 5000)
            """#, port)
        #expect(
            said == """
                plain: 200 OK, ok
                half closed: 200 OK, ok
                cut off: 400 Bad Request, 400 Bad Request
                pipelined: 200 OK, ok
                body: 405 Method Not Allowed, 405 Method Not Allowed
                body of GET: 200 OK, ok
                upgrade: 200 OK, ok
                old: 200 OK, ok
                too new: 400 Bad Request, 400 Bad Request
                of a proxy: 400 Bad Request, 400 Bad Request
                tunnel: 400 Bad Request, 400 Bad Request
                no method: 400 Bad Request, 400 Bad Request
                long header: 431 Request Header Fields Too Large, 431 Request Header Fields Too Large
                long path: 431 Request Header Fields Too Large, 431 Request Header Fields Too Large
                many headers: 431 Request Header Fields Too Large, 431 Request Header Fields Too Large
                endless blanks: 431 Request Header Fields Too Large, 431 Request Header Fields Too Large
                zero bytes: 400 Bad Request, 400 Bad Request

                """)
        server.signal(SIGTERM)
        #expect(await server.wait() == .exited(0), "\(server.stderr)")
    }

    @Test(
        "Where all places are taken, the one that has been silent longest leaves for who comes, and stopping waits for none"
    )
    func full() async throws {
        let b = try await RemoteBatch()
        let (server, port) = try await serve(b, on: "[::1]:0")
        let said = try await python(
            #"""
            def ask(s):
                s.sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
                return everything(s).partition("\r\n")[0]
            # They are cut off after 5 s; should this take longer, it is done again.
            for _ in range(20):
                began = time.monotonic()
                held = [connect("::1") for _ in range(64)]
                answer = ask(connect("::1"))
                first, second = held[0], held[1]
                gone = everything(first)
                second.settimeout(0.05)
                try:
                    stays = second.recv(1) != b""
                except TimeoutError:
                    stays = True
                if time.monotonic() < began + 4:
                    break
            print(repr(answer), repr(gone), stays)
            second.settimeout(60)
            second.sendall(b"GET /hea")
            os.kill(int(sys.argv[2]), 15)
            # A 408 would be what comes of waiting.
            print({everything(s) for s in held})
            """#, port, String(server.pid))
        #expect(said == "'HTTP/1.1 200 OK' '' True\n{''}\n")
        #expect(await server.wait() == .exited(0), "\(server.stderr)")
    }

    @Test("200 clients that connect, say half a request and come back keep no scraper from its answers")
    func crowd() async throws {
        let b = try await RemoteBatch()
        let (server, port) = try await serve(b)
        let said = try await python(
            #"""
            import threading
            def crowd():
                while True:
                    try:
                        s = socket.create_connection(("127.0.0.1", port), timeout=1)
                        s.sendall(b"GET /met")
                        s.recv(1)
                        s.close()
                    except OSError:
                        pass
                    # A client that is cut off is back within 10 ms.
                    time.sleep(0.01)
            # In a process of their own: the threads of one share a lock, so that a scrape would begin late.
            child = os.fork()
            if child == 0:
                for _ in range(200):
                    threading.Thread(target=crowd, daemon=True).start()
                time.sleep(600)
                os._exit(0)
            time.sleep(0.5)
            good = 0
            for _ in range(20):
                try:
                    s = socket.create_connection(("127.0.0.1", port), timeout=5)
                    s.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    good += everything(s).startswith("HTTP/1.1 200")
                except OSError:
                    pass
            os.kill(child, 9)
            os.waitpid(child, 0)
            print("answered", good)
            """#, port)
        let good = try #require(Int(said.filter(\.isNumber)))
        #expect(good >= 18, "\(said)")
        server.signal(SIGTERM)
        #expect(await server.wait() == .exited(0), "\(server.stderr)")
    }

    @Test("On a loopback address it answers to names that no page of a browser can have alone")
    func names() async throws {
        let b = try await RemoteBatch()
        let (server, port) = try await serve(b)
        let good = [
            "localhost", "LOCALHOST:9464", "127.0.0.1:1", "[::1]:9464", "10.1.2.3", "exporter:1", "a.localhost.",
        ]
        let bad = ["rebind.example", "rebind.example:80", "127.0.0.1.example.org", "[::1].example", ".", "a.example."]
        let said = try await python(
            #"""
            for host in sys.argv[2].split():
                s = connect()
                s.sendall(f"GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
                print(host, everything(s).split(" ", 2)[1])
            """#, port, (good + bad).joined(separator: " "))
        #expect(said == (good.map { "\($0) 200\n" } + bad.map { "\($0) 421\n" }).joined())
        // Elsewhere it is asked by the names that others gave the machine.
        let (other, open) = try await serve(b, on: "0.0.0.0:0")
        #expect(
            try await python(
                #"""
                s = connect()
                s.sendall(b"GET /healthz HTTP/1.1\r\nHost: metrics.example.svc.cluster.local\r\n\r\n")
                print(everything(s).split(" ", 2)[1])
                """#, open) == "200\n")
        for server in [server, other] {
            server.signal(SIGTERM)
            #expect(await server.wait() == .exited(0), "\(server.stderr)")
        }
    }

    @Test("Without descriptors it waits for some, and does not burn the processor meanwhile")
    func descriptors() async throws {
        let b = try await RemoteBatch()
        let (server, port) = try await serve(b, limit: 24)
        let said = try await python(
            #"""
            def used():
                fields = open(f"/proc/{sys.argv[2]}/stat").read().rpartition(")")[2].split()
                return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            # As many as the backlog takes and the limit does not.
            held = [connect() for _ in range(40)]
            while len(os.listdir(f"/proc/{sys.argv[2]}/fd")) < 24:
                pass
            began, before = time.monotonic(), used()
            time.sleep(2)
            share = (used() - before) / (time.monotonic() - began)
            print("idle" if share < 0.5 else share)
            for s in held:
                s.close()
            s = connect()
            s.sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
            print(everything(s).partition("\r\n")[0])
            """#, port, String(server.pid))
        #expect(said == "idle\nHTTP/1.1 200 OK\n")
        server.signal(SIGINT)
        #expect(await server.wait() == .exited(0), "\(server.stderr)")
    }
}
