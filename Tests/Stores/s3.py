"""A small S3 server for tests: one bucket, path style, objects in memory, and faults where a test asks for them.

Signatures are verified from the AWS documentation ("Authenticating Requests: Using the Authorization Header") without
code of a client, so that none is judged by its own mistake. What is not implemented is refused with 501. The first line
of stdout is the address; the server ends with the pipe on its stdin, or by a signal. Requests of tests are not signed:

POST /-/fault?action=A&count=N[&method=M][&suffix=S][&query=Q]  for the next N with this method, end of key, query name
POST /-/clear, POST /-/release  removes all faults; lets all requests that hang go on
GET /-/log                      METHOD KEY?QUERY STATUS of each S3 request as it was sent; 0 where nothing was answered
GET /-/uploads                  the number of uploads in parts that were neither completed nor aborted
GET /-/left, GET /-/waiting     how many requests are still to fail; how many have hung so far
GET /-/objects                  all keys, a line each
PUT, GET, DELETE /-/object/KEY  an object, as another program would write or read it
"""

import argparse
import base64
import calendar
import contextlib
import copy
import hashlib
import hmac
import http.server
import os
import re
import signal
import socket
import stat
import threading
import time
import urllib.parse
import xml.etree.ElementTree
from xml.sax.saxutils import escape

AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/,\s]+)/((\d{8})/([^/,\s]+)/s3/aws4_request)"
    r",\s*SignedHeaders=([^,\s]+),\s*Signature=([0-9a-f]{64})")
REFUSALS = {"503": "SlowDown", "500": "InternalError", "403": "AccessDenied"}
# half: half of the body is read, then the connection closes; reset: it closes before anything is done; drop: after it;
# flip: the first byte of what is put is stored as another; forget: answered as usual, but nothing is stored or deleted;
# late-error: 200 with an error as its body, and nothing is done;
# hang: waits for /-/release, and is done then; never, if the client closes the connection before.
ACTIONS = {*REFUSALS, "half", "reset", "drop", "flip", "forget", "late-error", "hang"}
# encoding-type is not followed, as on some servers: the answer lacks it, and keys are only escaped for XML.
LISTING = {"list-type", "prefix", "delimiter", "max-keys", "continuation-token", "encoding-type"}


class Refusal(Exception):
    """Status, code and more elements of an error."""


class Unanswered(ConnectionError):
    """The connection is closed without an answer."""


def element(name, text):
    return f"<{name}>{escape(str(text), {chr(34): '&quot;'})}</{name}>"


def document(status, name, inner):
    """An answer in XML: status, content and headers."""
    namespace = "" if name == "Error" else ' xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n<{name}{namespace}>{inner}</{name}>'
    return status, text.encode(), {"Content-Type": "application/xml"}


def error_document(status, code, more=""):
    return document(status, "Error", element("Code", code) + element("Message", f"{code}, says the test server") + more)


def etag_of(content):
    return f'"{hashlib.md5(content).hexdigest()}"'


def completed(body, parts):
    """Content and ETag of the parts that a client lists."""
    try:
        listed = xml.etree.ElementTree.fromstring(body).findall("{*}Part")
        listed = [(int(part.findtext("{*}PartNumber")), part.findtext("{*}ETag").strip('"')) for part in listed]
    except (xml.etree.ElementTree.ParseError, AttributeError, TypeError, ValueError):
        listed = []
    if not listed:
        raise Refusal(400, "MalformedXML")
    if [number for number, _ in listed] != sorted({number for number, _ in listed}):
        raise Refusal(400, "InvalidPartOrder")
    contents = [parts.get(number, b"") for number, _ in listed]
    digests = [hashlib.md5(content) for content in contents]
    if not {number for number, _ in listed} <= set(parts) or len(set(map(len, contents[:-1]))) > 1 \
            or [digest.hexdigest() for digest in digests] != [etag for _, etag in listed]:
        raise Refusal(400, "InvalidPart")
    digest = hashlib.md5(b"".join(digest.digest() for digest in digests))
    return b"".join(contents), f'"{digest.hexdigest()}-{len(listed)}"'


class Server(http.server.ThreadingHTTPServer):
    # With the default of 5, one of many connections at once would wait a second for its next attempt.
    request_queue_size = 128

    def __init__(self, options):
        super().__init__(("127.0.0.1", 0), Handler)
        self.options, self.lock = options, threading.Lock()
        # Content and headers of each key; key, headers, and contents by number of each upload.
        self.objects, self.uploads = {}, {}
        self.faults, self.log, self.waiting, self.released = [], [], 0, threading.Event()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body are two packets; with Nagle's algorithm the second would wait for a delayed acknowledgement.
    disable_nagle_algorithm = True

    def log_message(self, format, *args):
        pass

    def handle(self):
        with contextlib.suppress(ConnectionError):
            super().handle()

    def respond(self):
        self.raw_path, _, self.raw_query = self.path.partition("?")
        # A plus sign is a space to parse_qsl(), as it is to S3.
        self.parameters = urllib.parse.parse_qsl(self.raw_query, keep_blank_values=True)
        self.query, self.unread = dict(self.parameters), int(self.headers.get("Content-Length", 0))
        self.bucket, _, self.key = urllib.parse.unquote(self.raw_path)[1:].partition("/")
        if self.bucket == "-":
            return self.answer(*self.control(self.read(self.unread)))
        status = 0
        try:
            status, content, headers = self.result()
        finally:
            # Before the answer, so that a test that has seen the answer finds it here.
            raw_key = self.raw_path[1:].partition("/")[2]
            with self.server.lock:
                self.server.log.append(f"{self.command} {raw_key}?{self.raw_query} {status}")
        self.answer(status, content, headers)

    do_DELETE = do_GET = do_HEAD = do_POST = do_PUT = respond

    def read(self, count):
        content = self.rfile.read(count)
        self.unread -= len(content)
        if len(content) < count:
            raise Unanswered
        return content

    def answer(self, status, content, headers):
        # What a refused request left unread would be taken for the next request.
        self.read(self.unread)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(content)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def result(self):
        """Status, content and headers of the answer to an S3 request, after its fault."""
        action = ""
        try:
            if "Transfer-Encoding" in self.headers or self.command == "PUT" and "Content-Length" not in self.headers:
                self.close_connection = True
                raise Refusal(411, "MissingContentLength")
            self.verify_signature()
            if self.take_fault(is_body_read=False):
                self.read(self.unread // 2)
                raise Unanswered
            body = self.read(self.unread)
            if hashlib.sha256(body).hexdigest() != self.headers["x-amz-content-sha256"]:
                raise Refusal(400, "XAmzContentSHA256Mismatch")
            md5 = base64.b64encode(hashlib.md5(body).digest()).decode()
            if self.headers.get("Content-MD5", md5) != md5:
                raise Refusal(400, "BadDigest")
            action = self.take_fault(is_body_read=True)
            if action in REFUSALS:
                raise Refusal(int(action), REFUSALS[action])
            if action == "late-error":
                return error_document(200, "InternalError")
            if action == "reset":
                raise Unanswered
            if action == "hang":
                self.wait_for_release()
            answer = self.perform(action, body)
        except Refusal as refusal:
            answer = error_document(*refusal.args)
        if action == "drop":
            raise Unanswered
        return answer

    def take_fault(self, is_body_read):
        """The action of the first fault that fits. Only `half` acts before the body is read."""
        with self.server.lock:
            for fault in self.server.faults:
                if fault["count"] and fault.get("method") in (None, self.command) \
                        and self.key.endswith(fault.get("suffix", "")) and fault.get("query") in (None, *self.query):
                    is_now = (fault["action"] == "half") != is_body_read
                    fault["count"] -= is_now
                    return fault["action"] if is_now else ""
        return ""

    def wait_for_release(self):
        with self.server.lock:
            self.server.waiting += 1
            released = self.server.released
        while not released.wait(0.02):
            with contextlib.suppress(BlockingIOError):
                if not self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT):
                    raise Unanswered

    def verify_signature(self):
        options, moment = self.server.options, self.headers.get("x-amz-date", "")
        if "Authorization" not in self.headers or not re.fullmatch(r"\d{8}T\d{6}Z", moment):
            raise Refusal(403, "AccessDenied")
        match = AUTHORIZATION.fullmatch(self.headers["Authorization"])
        key, scope, date, region, names, signature = match.groups() if match else [""] * 6
        if region != options.region or date != moment[:8]:
            raise Refusal(400, "AuthorizationHeaderMalformed", element("Region", options.region))
        if key != options.key:
            raise Refusal(403, "InvalidAccessKeyId")
        if options.token and self.headers.get("x-amz-security-token") != options.token:
            raise Refusal(403, "InvalidToken")
        if abs(time.time() - calendar.timegm(time.strptime(moment, "%Y%m%dT%H%M%SZ"))) > 15 * 60:
            raise Refusal(403, "RequestTimeTooSkewed")
        signed, sent = names.split(";"), {name.lower() for name in self.headers}
        needed = {"host", "x-amz-date", "x-amz-content-sha256"} | {name for name in sent if name.startswith("x-amz-")}
        # quote() leaves letters, digits and -._~ as they are.
        path = urllib.parse.quote(urllib.parse.unquote(self.raw_path), safe="/")
        if signed != sorted(set(signed)) or not needed <= set(signed) <= sent or self.raw_path != path:
            raise Refusal(403, "SignatureDoesNotMatch", element("CanonicalPath", path))
        query = sorted([urllib.parse.quote(text, safe="") for text in pair] for pair in self.parameters)
        headers = [",".join(" ".join(line.split()) for line in self.headers.get_all(name)) for name in signed]
        canonical = "\n".join([
            self.command, path, "&".join(map("=".join, query)), *map(":".join, zip(signed, headers)), "", names,
            self.headers["x-amz-content-sha256"]])
        # http.server decodes the bytes of headers as Latin-1.
        digest = hashlib.sha256(canonical.encode("latin-1")).hexdigest()
        secret = ("AWS4" + options.secret).encode()
        for part in (*scope.split("/"), f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{digest}"):
            secret = hmac.digest(secret, part.encode(), "sha256")
        if secret.hex() != signature:
            raise Refusal(403, "SignatureDoesNotMatch", element("CanonicalRequest", canonical))

    def perform(self, action, body):
        if self.bucket != self.server.options.bucket:
            raise Refusal(404, "NoSuchBucket")
        if action == "flip" and self.command == "PUT" and body:
            body = bytes([body[0] ^ 1]) + body[1:]
        with self.server.lock:
            state = self.server.objects, self.server.uploads
            return self.operate(body, *(copy.deepcopy(state) if action == "forget" else state))

    def operate(self, body, objects, uploads):
        upload, etag = self.query.get("uploadId"), etag_of(body)
        if upload is not None and uploads.get(upload, [None])[0] != self.key:
            raise Refusal(404, "NoSuchUpload")
        kept = {name: value for name, value in self.headers.items() if name.lower().startswith("x-amz-meta-")}
        kept["Content-Type"] = self.headers.get("Content-Type", "binary/octet-stream")
        match self.command, *sorted(self.query):
            case "GET", *_ if not self.key and {"list-type"} <= set(self.query) <= LISTING:
                return self.list_objects(objects)
            case _ if not self.key or "x-amz-copy-source" in self.headers:
                raise Refusal(501, "NotImplemented")
            case "PUT", :
                if "If-None-Match" in self.headers and self.server.options.unconditional:
                    raise Refusal(501, "NotImplemented")
                if self.headers.get("If-None-Match") == "*" and self.key in objects:
                    raise Refusal(412, "PreconditionFailed")
                objects[self.key] = body, {**kept, "ETag": etag}
                return 200, b"", {"ETag": etag}
            case "GET" | "HEAD", :
                if self.key not in objects:
                    raise Refusal(404, "NoSuchKey")
                return 200, *objects[self.key]
            case "DELETE", :
                objects.pop(self.key, None)
                return 204, b"", {}
            case "POST", "uploads":
                # Other servers have such characters in it, so that a client has to encode it.
                upload = f"+/{time.time_ns()}="
                uploads[upload] = self.key, kept, {}
                return document(200, "InitiateMultipartUploadResult", element("UploadId", upload))
            case "PUT", "partNumber", "uploadId" if re.fullmatch("[1-9][0-9]{0,3}|10000", self.query["partNumber"]):
                uploads[upload][2][int(self.query["partNumber"])] = body
                return 200, b"", {"ETag": etag}
            case "PUT", "partNumber", "uploadId":
                raise Refusal(400, "InvalidArgument")
            case "POST", "uploadId":
                _, headers, parts = uploads[upload]
                content, etag = completed(body, parts)
                objects[self.key] = content, {**headers, "ETag": etag}
                del uploads[upload]
                return document(200, "CompleteMultipartUploadResult", element("Key", self.key) + element("ETag", etag))
            case "DELETE", "uploadId":
                del uploads[upload]
                return 204, b"", {}
        raise Refusal(501, "NotImplemented")

    def list_objects(self, objects):
        prefix, delimiter, token = (self.query.get(name, "") for name in ("prefix", "delimiter", "continuation-token"))
        try:
            most = min(int(self.query.get("max-keys", 1000)), self.server.options.page)
            last = base64.b64decode(token, validate=True).decode()
        except ValueError:
            raise Refusal(400, "InvalidArgument") from None
        rows = {}
        for key, (content, headers) in objects.items():
            end = key.find(delimiter, len(prefix)) if delimiter else -1
            if key.startswith(prefix) and end >= 0:
                row = key[:end + len(delimiter)]
                rows[row] = f"<CommonPrefixes>{element('Prefix', row)}</CommonPrefixes>"
            elif key.startswith(prefix):
                inner = element("Key", key) + element("Size", len(content)) + element("ETag", headers["ETag"])
                rows[key] = f"<Contents>{inner}</Contents>"
        # Strings are sorted by code point, which is the order of their UTF-8 bytes, and that of S3.
        after = [row for row in sorted(rows) if row > last]
        page, is_truncated = after[:most], 0 < most < len(after)
        inner = element("KeyCount", len(page)) + element("IsTruncated", str(is_truncated).lower())
        if is_truncated:
            inner += element("NextContinuationToken", base64.b64encode(page[-1].encode()).decode())
        return document(200, "ListBucketResult", inner + "".join(rows[row] for row in page))

    def control(self, body):
        """The answer to a request of a test."""
        server, fault, (name, _, key) = self.server, {"count": "1", **self.query}, self.key.partition("/")
        content = ""
        with server.lock:
            match self.command, name:
                case "POST", "fault" if fault.get("action") in ACTIONS and fault["count"].isdecimal() \
                        and set(fault) <= {"method", "suffix", "query", "action", "count"}:
                    server.faults.append({**fault, "count": int(fault["count"])})
                case "POST", "clear":
                    server.faults.clear()
                case "POST", "release":
                    server.released.set()
                    server.released = threading.Event()
                case "GET", "log":
                    content = "".join(f"{line}\n" for line in server.log)
                case "GET", "objects":
                    content = "".join(f"{key}\n" for key in sorted(server.objects))
                case "GET", "uploads":
                    content = str(len(server.uploads))
                case "GET", "left":
                    content = str(sum(fault["count"] for fault in server.faults))
                case "GET", "waiting":
                    content = str(server.waiting)
                case "PUT", "object":
                    server.objects[key] = body, {"Content-Type": "binary/octet-stream", "ETag": etag_of(body)}
                case "GET", "object" if key in server.objects:
                    return 200, server.objects[key][0], {}
                case "DELETE", "object":
                    server.objects.pop(key, None)
                case _:
                    return 400 if name == "fault" else 404, b"", {}
        return 200, content.encode(), {}


def main():
    parser = argparse.ArgumentParser()
    for name in ("--bucket", "--key", "--secret"):
        parser.add_argument(name, required=True)
    parser.add_argument("--region", default="us-east-1")
    parser.add_argument("--token")
    parser.add_argument("--page", type=int, default=1000)
    parser.add_argument("--unconditional", action="store_true", help="does not know If-None-Match")
    server = Server(parser.parse_args())
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    # Only a pipe tells that its other end has gone; /dev/null and files are at their end from the beginning.
    if not stat.S_ISFIFO(os.fstat(0).st_mode):
        signal.pause()
    while os.read(0, 4096):
        pass


if __name__ == "__main__":
    main()
