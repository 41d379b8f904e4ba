"""An origin that thinks before it answers."""

import asyncio
import threading


class SlowServer:
    """Answers every request with the same body after a while."""

    def __init__(self, body, delay):
        self.head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
        self.body, self.delay = body, delay
        self.loop = asyncio.new_event_loop()
        self.ready = threading.Event()
        threading.Thread(target=self.run, daemon=True).start()
        self.ready.wait()

    def run(self):
        asyncio.set_event_loop(self.loop)
        server = self.loop.run_until_complete(asyncio.start_server(self.serve, "127.0.0.1", 0, backlog=256))
        self.base = "http://127.0.0.1:%d" % server.sockets[0].getsockname()[1]
        self.ready.set()
        self.loop.run_forever()
        server.close()

    async def serve(self, reader, writer):
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                await asyncio.sleep(self.delay)
                writer.write(self.head + self.body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def stop(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
