import Foundation
import TestSupport
import Testing

/// What others than scrapers do to `metrics --listen`, over sockets of Python.
@Suite("Metrics over HTTP", .timeLimit(.minutes(2)))
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

    @Test("The 65th connection is cut off, the next one after somebody has gone is not, and stopping waits for none")
    func full() async throws {
        let b = try await RemoteBatch()
        let (server, port) = try await serve(b, on: "[::1]:0")
        let said = try await python(
            #"""
            def ask(s):
                try:
                    s.sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
                    return everything(s).partition("\r\n")[0]
                except ConnectionError:
                    return ""
            # They are cut off after 5 s; should this take longer, it is done again.
            for _ in range(20):
                began = time.monotonic()
                held = [connect("::1") for _ in range(64)]
                refused = ask(connect("::1"))
                held.pop().close()
                while not (after := ask(connect("::1"))) and time.monotonic() < began + 4:
                    pass
                if time.monotonic() < began + 4:
                    break
            print(repr(refused), repr(after))
            held[0].sendall(b"GET /hea")
            os.kill(int(sys.argv[2]), 15)
            # A 408 would be what comes of waiting.
            print({everything(s) for s in held})
            """#, port, String(server.pid))
        #expect(said == "'' 'HTTP/1.1 200 OK'\n{''}\n")
        #expect(await server.wait() == .exited(0), "\(server.stderr)")
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
