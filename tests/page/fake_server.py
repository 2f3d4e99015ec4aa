"""fake_server.py - a server for tests of the page: the routes of runtime/page/README.md, and answers to order.

It is no part of Weft. It serves the page that CMake joined with the headers that go with it, and remembers what it was
asked. The last word of the last message says what to do: see ANSWERS."""

import http.server
import json
import socket
import threading
import time

STORY = ["Once", " upon", " a", " time", ",", " there", " was", " a", " **loom**", ".\n\n", "- warp\n", "- weft\n\n",
         "```c\nint x = 1;", " // one\n", "```\n"]

# What a hostile model might write. Whatever of it works would set window.pwned or make an element that is not allowed.
HOSTILE = """<script>window.pwned = 1</script>
<img src=x onerror="window.pwned = 2">
<iframe srcdoc="<script>parent.pwned = 3</script>"></iframe>

[click](javascript:window.pwned=4) [data](data:text/html,<script>window.pwned=5</script>) [path](/v1/models) ![img](javascript:window.pwned=6)
![pixel](https://evil.example/pixel.png) [good](https://good.example/a?b=c) <https://auto.example/>

| <b>a</b> | [x](vbscript:x) |
|---|---|
| <svg onload="window.pwned=7"> | `<script>window.pwned=8</script>` |

```html
<script>window.pwned = 9</script>
</code></pre><script>window.pwned = 10</script>
```
</div></article></main><style>body { display: none }</style><base href="https://evil.example/"><form action="https://evil.example"><button>Send</button></form>
"""

MODEL_TEXT = "# A small model.\nweft 1\nmodel llama \"Llama\" {\n  x = tok_embd(tokens)\n  h = attn_norm(x)  # <script>window.pwned = 11</script>\n}\n"
GRAPH = '<svg xmlns="http://www.w3.org/2000/svg" width="300" height="400" viewBox="0 0 300 400"><rect width="300" height="400" fill="#fff"/>' \
        '<rect x="40" y="40" width="120" height="40" fill="#d6e6fa" stroke="#3a6fb0"/><text x="60" y="65">linear</text><script>parent.pwned = 12</script>' \
        '<style>.k { fill: #ff0000 }</style><rect class="k" y="300" width="300" height="100"/></svg>'


class Fake(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, html, headers, port=0):
        super().__init__(("127.0.0.1", port), Handler)
        self.html, self.page_headers = html, headers
        self.key = None           # where it is set, requests need it
        self.chats = True         # False: the model has no template
        self.profile = True
        self.asked = []           # (method, path, body, authorization)
        self.gone = 0             # streams whose client left
        self.tokens = 0
        self.begun = time.time()
        self.lock = threading.Lock()
        self.sockets = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return "http://127.0.0.1:%d/" % self.server_address[1]

    def kill(self):
        """Gone, with all its connections."""
        self.shutdown()
        self.server_close()
        for s in self.sockets:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it was closed before

    def bodies(self):
        return [b for m, p, b, a in self.asked if p.endswith("completions")]

    def count(self, path):
        return sum(1 for m, p, b, a in self.asked if p == path)

    def handle_error(self, request, client_address):
        pass  # clients leave in the middle on purpose


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def setup(self):
        super().setup()
        self.server.sockets.append(self.connection)

    # ---- answers ----

    def send_bytes(self, status, headers, data):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def send_json(self, status, value, headers=()):
        self.send_bytes(status, [("Content-Type", "application/json"), *headers], json.dumps(value).encode())

    def send_error_json(self, status, message, headers=()):
        self.send_json(status, {"error": {"message": message, "type": "test", "param": None, "code": "W1"}}, headers)

    def allowed(self):
        return self.server.key is None or self.headers.get("Authorization") == "Bearer " + self.server.key

    def note(self, body):
        with self.server.lock:
            self.server.asked.append((self.command, self.path, body, self.headers.get("Authorization")))

    def do_GET(self):
        self.note(None)
        if self.path in ("/", "/index.html"):
            self.send_bytes(200, self.server.page_headers, self.server.html)
        elif self.path not in ROUTES:
            self.send_error_json(404, "no route " + self.path)
        elif not self.allowed():
            self.send_error_json(401, "this server needs a key")
        else:
            ROUTES[self.path](self)

    def models(self):
        rows = [{"id": name, "object": "model", "chat": self.server.chats} for name in ("tiny", "tiny:pirate")]
        self.send_json(200, {"object": "list", "data": rows})

    def state(self):
        t = time.time() - self.server.begun
        at = [0, int(40 * t), int(95 * t), int(100 * t)]
        self.send_json(200, {
            "version": "0.1.0", "model": "tiny", "uptime_s": t, "draining": False,
            "limits": {"batch": 512, "sequences": 32, "queue": 1024, "context": 2048},
            "requests": {"running": 3, "waiting": int(t) % 4, "preempted": 0, "jobs": 9, "refused": 1,
                         "ended": {"stop": 7, "cancelled": 2}},
            "counters": {"steps": int(50 * t), "rows_prompt": int(900 * t), "rows_decode": int(150 * t),
                         "tokens_prompt": int(900 * t),
                         "tokens_cached": int(300 * t), "tokens_generated": int(100 * t)},
            "times": {"bucket_s": [0.001, 0.01, 0.02, None], "inter_token": {"n": at[3], "sum_s": t, "at": at},
                      "first_token": {"n": at[3], "sum_s": t, "at": at}},
            "state": [{"keys": "f16", "values": "f16", "last": 256, "page_tokens": 64, "pages": 100, "pages_free": 40,
                       "bytes": 1 << 20, "bytes_used": 600000},
                      {"keys": "q8", "values": "q4", "page_tokens": 64, "pages": 200, "pages_free": 190,
                       "bytes": 1 << 20, "bytes_used": 6000}],
            "prefixes": {"most": 64, "kept": 3, "pages": 12, "bytes": 4096, "lookups": 10, "hits": 7, "tokens": 900,
                         "tokens_reused": 700, "evicted": 0},
            "slots": [{"id": 17, "choice": 0, "model": "tiny:pirate", "phase": "decode", "key": "<b>alice</b>",
                       "prompt_tokens": 120, "held_tokens": 132,
                       "generated": 12, "pages": 3, "age_s": 1.2}, None],
        })

    def model(self):
        self.send_json(200, {
            "id": "tiny", "family": "llama", "title": "Llama", "format": "GGUF", "parameters": 7340000,
            "bytes": 14680064, "context": 512, "device": "cpu", "threads": 2, "plan": "interpreter",
            "params": {"vocab": 4096, "layers": 6, "window": None},
            "files": [{"name": "<weft>/llama.weft", "text": MODEL_TEXT},
                      {"name": "<weft>/std/rope.weft", "text": "weft 1\ndef f(x) = x\n"}]})

    def graph(self):
        self.send_bytes(200, [("Content-Type", "image/svg+xml")], GRAPH.encode())

    def profile(self):
        if not self.server.profile:
            self.send_error_json(404, "calls are not timed; start the server with --profile")
            return
        decode = {"seconds": 0.5, "gb_per_s": 8.0, "roof_share": 0.5}
        self.send_json(200, {
            "every": 64, "calls": 12, "decode": {"tokens": 100, "timed_seconds": 2.0}, "prefill": None,
            "lines": [{"file": "<weft>/llama.weft", "line": 4, "decode": decode, "prefill": {"seconds": 0}},
                      {"file": "<weft>/llama.weft", "line": 5, "decode": {"seconds": 1.2}, "prefill": {"seconds": 0}}]})

    # ---- streams ----

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        self.note(body)
        if not self.allowed():
            self.send_error_json(401, "this server needs a key")
            return
        self.text_form = "prompt" in body
        said = body["prompt"] if self.text_form else body["messages"][-1]["content"]
        try:
            ANSWERS.get(said.split()[-1] if said.split() else "", Handler.story)(self)
        except (BrokenPipeError, ConnectionResetError):
            self.server.gone += 1
            self.close_connection = True

    def begin(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def write(self, text):
        data = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def event(self, value):
        self.write("data: " + (value if isinstance(value, str) else json.dumps(value)) + "\n\n")

    def piece(self, text, end=None):
        said = {"text": text} if self.text_form else {"delta": {"content": text} if text else {}}
        self.event({"choices": [{"index": 0, **said, "finish_reason": end}]})

    def complete(self, end="stop"):
        self.piece("", end)
        self.event({"choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 15,
                                             "prompt_tokens_details": {"cached_tokens": 8}}})
        self.event("[DONE]")
        self.write("")  # the empty chunk ends the body

    def story(self):
        self.begin()
        self.write(": alive\n\n")
        for word in STORY:
            self.piece(word)
            time.sleep(0.01)
        self.complete()

    def hostile(self):
        self.begin()
        for i in range(0, len(HOSTILE), 7):
            self.piece(HOSTILE[i:i + 7])
        self.complete()

    def slow(self):
        self.begin()
        for i in range(3000):  # a minute; the client leaves before
            self.piece("word%d " % i)
            time.sleep(0.02)
        self.complete()

    def think(self):
        self.begin()
        self.event({"choices": [{"index": 0, "delta": {"reasoning_content": "Let me <b>see</b>."}}]})
        self.piece("Done.")
        self.complete("length")

    def long(self):
        self.begin()
        for i in range(400):
            self.piece("Paragraph %d of a long answer, which fills the page.\n\n" % i)
        self.complete()

    def bad(self):
        self.send_error_json(400, "top_k is 0, expected 1 or more")

    def busy(self):
        self.send_error_json(429, "the queue is full", [("Retry-After", "7")])

    def broken(self):
        self.begin()
        self.piece("Half an ")
        self.event({"error": {"message": "no pages left"}})
        self.write("")

    def cut(self):
        self.begin()
        self.piece("Half an ")
        time.sleep(0.2)
        self.close_connection = True  # without the end of the body


ROUTES = {"/v1/models": Handler.models, "/weft/state": Handler.state, "/weft/model": Handler.model,
          "/weft/graph.svg": Handler.graph,
          "/weft/profile": Handler.profile}
ANSWERS = {"hostile": Handler.hostile, "slow": Handler.slow, "think": Handler.think, "long": Handler.long,
           "bad": Handler.bad, "busy": Handler.busy,
           "broken": Handler.broken, "cut": Handler.cut}
