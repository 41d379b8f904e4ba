"""A small S3 server for tests: one bucket, objects in memory, and faults where it is told to.

Every signature is checked here from the AWS documentation ("Authenticating Requests: Using the Authorization Header"), so that the client is
judged by what it did not write. S3Stub.swift starts it. The first line on standard output is its address.
"""

import argparse
import hashlib
import hmac
import http.server
import sys
import threading
import time
import urllib.parse
from xml.sax.saxutils import escape

UNRESERVED = "-._~"


def encoded(text, safe=""):
    return urllib.parse.quote(text, safe=UNRESERVED + safe)


class Refusal(Exception):
    def __init__(self, status, code, more=""):
        self.status, self.code, self.more = status, code, more


class Store:
    def __init__(self, options):
        self.options = options
        self.lock = threading.Lock()
        self.objects = {}  # key -> (bytes, headers that come back, ETag)
        self.uploads = {}  # id -> (key, headers, {number: (bytes, ETag)})
        self.faults = []
        self.log = []
        self.released = threading.Event()
        self.waiting = 0

    def fault(self, method, key, query):
        """The action for a request, and one time less of it."""
        with self.lock:
            for fault in self.faults:
                if fault["count"] > 0 and fault.get("method", method) == method and key.endswith(fault.get("suffix", "")) \
                        and ("query" not in fault or fault["query"] in query):
                    fault["count"] -= 1
                    return fault["action"]
        return ""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # One packet for head and body: otherwise the client's delayed acknowledgement costs 40 ms an answer.
    wbufsize = -1

    def log_message(self, *_):
        pass

    def handle_one_request(self):
        try:
            super().handle_one_request()
        except (ConnectionError, BrokenPipeError):
            self.close_connection = True

    def handle_expect_100(self):
        super().handle_expect_100()
        self.wfile.flush()
        return True

    def do_GET(self):
        store = self.server.store
        parts = urllib.parse.urlsplit(self.path)
        path, self.query = parts.path, urllib.parse.parse_qs(parts.query, keep_blank_values=True)
        self.raw_query = parts.query
        self.answered = 0
        if path.startswith("/-/"):
            return self.control(path[3:], self.read(self.length))
        bucket, _, self.key = path[1:].partition("/")
        self.raw_path, self.key = path, urllib.parse.unquote(self.key)
        action = store.fault(self.command, self.key, self.query)
        if action == "half":
            self.read(self.length // 2)
            self.close_connection = True
        else:
            body = self.read(self.length)
            try:
                self.check(body)
                if bucket != store.options.bucket:
                    raise Refusal(404, "NoSuchBucket")
                self.act(action, body)
            except Refusal as refusal:
                self.refuse(refusal)
        with store.lock:
            store.log.append(f"{self.command} {self.key}?{self.raw_query} {self.answered}")

    do_PUT = do_POST = do_DELETE = do_HEAD = do_GET

    @property
    def length(self):
        return int(self.headers.get("Content-Length") or 0)

    def read(self, count):
        return self.rfile.read(count) if count else b""

    # Answers

    def answer(self, status, body=b"", headers=()):
        self.answered = status
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if not any(name == "Content-Length" for name, _ in headers):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        self.wfile.flush()

    def refuse(self, refusal):
        text = f"<Error><Code>{refusal.code}</Code><Message>{refusal.code} of the tests</Message>{refusal.more}</Error>"
        self.answer(refusal.status, f'<?xml version="1.0" encoding="UTF-8"?>\n{text}'.encode())

    # Signature Version 4

    def check(self, body):
        options = self.server.store.options
        scheme, _, rest = self.headers.get("Authorization", "").partition(" ")
        fields = dict(part.strip().split("=", 1) for part in rest.split(",") if "=" in part)
        if scheme != "AWS4-HMAC-SHA256" or not {"Credential", "SignedHeaders", "Signature"} <= set(fields):
            raise Refusal(403, "AccessDenied")
        key, date, region, service, end = fields["Credential"].split("/")
        stamp = self.headers.get("x-amz-date", "")
        try:
            sent = time.mktime(time.strptime(stamp, "%Y%m%dT%H%M%SZ")) - time.timezone
        except ValueError:
            raise Refusal(403, "AccessDenied") from None
        if abs(time.time() - sent) > 900:
            raise Refusal(403, "RequestTimeTooSkewed")
        if region != options.region:
            raise Refusal(400, "AuthorizationHeaderMalformed", f"<Region>{options.region}</Region>")
        if key != options.key:
            raise Refusal(403, "InvalidAccessKeyId")
        if options.token and self.headers.get("x-amz-security-token") != options.token:
            raise Refusal(403, "InvalidToken")
        signed = fields["SignedHeaders"].split(";")
        needed = {"host", "x-amz-date", "x-amz-content-sha256"} | {
            name.lower() for name in self.headers if name.lower().startswith("x-amz-")}
        canonical_path = encoded(urllib.parse.unquote(self.raw_path), "/")
        if signed != sorted(signed) or not needed <= set(signed) or self.raw_path != canonical_path:
            raise Refusal(403, "SignatureDoesNotMatch")
        pairs = [part.partition("=") for part in self.raw_query.split("&") if part]
        query = "&".join(sorted(f"{name}={encoded(urllib.parse.unquote(value))}" for name, _, value in pairs))
        headers = "".join(f"{name}:{' '.join((self.headers.get(name) or '').split())}\n" for name in signed)
        digest = self.headers.get("x-amz-content-sha256", "")
        request = "\n".join([self.command, canonical_path, query, headers, ";".join(signed), digest])
        scope = f"{date}/{region}/{service}/{end}"
        text = "\n".join([scheme, stamp, scope, hashlib.sha256(request.encode()).hexdigest()])
        secret = ("AWS4" + options.secret).encode()
        for part in scope.split("/"):
            secret = hmac.new(secret, part.encode(), hashlib.sha256).digest()
        if hmac.new(secret, text.encode(), hashlib.sha256).hexdigest() != fields["Signature"]:
            raise Refusal(403, "SignatureDoesNotMatch")
        if hashlib.sha256(body).hexdigest() != digest:
            raise Refusal(400, "XAmzContentSHA256Mismatch")

    # Requests

    def act(self, action, body):
        store = self.server.store
        if action == "hang":
            store.waiting += 1
            store.released.wait()
        if action in ("reset", "hang"):
            self.close_connection = True
            return
        if action in ("503", "500", "403"):
            code = {"503": "SlowDown", "500": "InternalError", "403": "AccessDenied"}[action]
            raise Refusal(int(action), code)
        if action == "late-error":
            return self.answer(200, b"<Error><Code>InternalError</Code><Message>late</Message></Error>")
        status, content, headers = self.result(action, body)
        if action == "drop":
            self.close_connection = True
            return
        self.answer(status, content, headers)

    def result(self, action, body):
        with self.server.store.lock:
            if not self.key:
                return self.listing()
            if "uploads" in self.query or "uploadId" in self.query:
                return self.part(action, body)
            return self.object(action, body)

    def kept(self):
        return [(name, value) for name, value in self.headers.items()
                if name.lower().startswith("x-amz-meta-") or name.lower() == "content-type"]

    def received(self, action, body):
        """The bytes as they are stored, and their ETag."""
        if action == "flip":
            body = bytes([body[0] ^ 1]) + body[1:]
        return body, f'"{hashlib.md5(body).hexdigest()}"'

    def object(self, action, body):
        objects = self.server.store.objects
        if self.command == "PUT":
            content, etag = self.received(action, body)
            objects[self.key] = (content, self.kept(), etag)
            return 200, b"", [("ETag", etag)]
        if self.command == "DELETE":
            objects.pop(self.key, None)
            return 204, b"", []
        if self.key not in objects:
            raise Refusal(404, "NoSuchKey")
        content, headers, etag = objects[self.key]
        return 200, content, headers + [("ETag", etag), ("Content-Length", str(len(content)))]

    def part(self, action, body):
        store = self.server.store
        if "uploads" in self.query:
            name = f"u+/={len(store.uploads)}.{time.time_ns()}"
            store.uploads[name] = (self.key, self.kept(), {})
            return 200, f"<R xmlns='x'><UploadId>{escape(name)}</UploadId></R>".encode(), []
        name = self.query["uploadId"][0]
        if name not in store.uploads:
            raise Refusal(404, "NoSuchUpload")
        key, headers, parts = store.uploads[name]
        if self.command == "DELETE":
            del store.uploads[name]
            return 204, b"", []
        if self.command == "PUT":
            parts[int(self.query["partNumber"][0])] = self.received(action, body)
            return 200, b"", [("ETag", parts[int(self.query["partNumber"][0])][1])]
        numbers = sorted(parts)
        lengths = {len(parts[number][0]) for number in numbers[:-1]}
        listed = "".join(f"<Part><PartNumber>{number}</PartNumber><ETag>{parts[number][1]}</ETag></Part>" for number in numbers)
        if body.decode() != f"<CompleteMultipartUpload>{listed}</CompleteMultipartUpload>" or len(lengths) > 1:
            raise Refusal(400, "InvalidPart")
        etag = hashlib.md5(b"".join(bytes.fromhex(parts[number][1].strip('"')) for number in numbers)).hexdigest()
        content = b"".join(parts[number][0] for number in numbers)
        store.objects[key] = (content, headers, f'"{etag}-{len(numbers)}"')
        del store.uploads[name]
        return 200, b"<CompleteMultipartUploadResult/>", []

    def listing(self):
        store = self.server.store
        prefix, delimiter = (self.query.get(name, [""])[0] for name in ("prefix", "delimiter"))
        most = min(int(self.query.get("max-keys", ["1000"])[0]), store.options.page)
        after = self.query.get("continuation-token", [""])[0]
        rows = sorted({
            prefix + rest.partition(delimiter)[0] + delimiter if delimiter and delimiter in rest else prefix + rest
            for rest in (key[len(prefix):] for key in store.objects if key.startswith(prefix))})
        rows = [row for row in rows if row > after]
        page = rows[:most]
        text = ""
        for row in page:
            if row in store.objects:
                content, _, etag = store.objects[row]
                text += f"<Contents><Key>{escape(row)}</Key><ETag>{escape(etag, {chr(34): '&quot;'})}</ETag>" \
                        f"<Size>{len(content)}</Size></Contents>"
            else:
                text += f"<CommonPrefixes><Prefix>{escape(row)}</Prefix></CommonPrefixes>"
        more = len(rows) > most
        if more:
            text += f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>"
        answer = f"<ListBucketResult xmlns='x'><IsTruncated>{str(more).lower()}</IsTruncated>{text}</ListBucketResult>"
        return 200, answer.encode(), []

    # What tests say and ask

    def control(self, path, body):
        store = self.server.store
        name, _, key = path.partition("/")
        key = urllib.parse.unquote(key)
        text, status = "", 200
        with store.lock:
            if name == "fault":
                fault = {name: values[0] for name, values in self.query.items()}
                store.faults.append(fault | {"count": int(fault["count"])})
            elif name == "release":
                store.released.set()
            elif name == "log":
                text = "".join(line + "\n" for line in store.log)
            elif name == "waiting":
                text = str(store.waiting)
            elif name == "left":
                text = str(sum(fault["count"] for fault in store.faults))
            elif name == "uploads":
                text = str(len(store.uploads))
            elif name == "objects":
                text = "".join(key + "\n" for key in sorted(store.objects))
            elif self.command == "PUT":
                store.objects[key] = (body, [], f'"{hashlib.md5(body).hexdigest()}"')
            elif self.command == "DELETE":
                store.objects.pop(key, None)
            elif key in store.objects:
                return self.answer(200, store.objects[key][0])
            else:
                status = 404
        self.answer(status, text.encode())


def main():
    parser = argparse.ArgumentParser()
    for option in ("bucket", "key", "secret"):
        parser.add_argument("--" + option, required=True)
    parser.add_argument("--region", default="us-east-1")
    parser.add_argument("--token", default="")
    parser.add_argument("--page", type=int, default=1000)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.store = Store(parser.parse_args())
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    sys.exit(main())
