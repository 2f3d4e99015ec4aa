"""soak.py WEFT MODEL [--requests N] [--seed N] [--clients N] [--no-rss] - requests of all kinds at `weft serve`, in random order.

Good ones, malformed ones, clients that go in the middle. Each has to be answered with a status, and each failure with OpenAI's JSON. Then: no work
is left, clients that went had their work cancelled, memory is flat after the warm-up, and the idle server takes no processor time. --no-rss
is for builds with sanitizers, whose memory grows by design."""
import argparse
import json
import random
import socket
import sys
import threading
import time

from server import Server

WARM = 0.3          # of the requests: caches, arenas and the allocator have their size
RSS_KIB = 12 << 10  # that memory may grow after it; a leak of 2 KiB a request shows with 10 000
IDLE_S = 3
IDLE_CPU_S = 0.03
WAIT_S = 120

CITY = {"type": "object", "properties": {"city": {"type": "string", "enum": ["Bern", "Basel"]}}, "required": ["city"],
        "additionalProperties": False}
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": CITY}}]


class Answer:
    """Of a raw connection: status, headers, body. A body ends as its head says."""

    def __init__(self, data):
        head, _, body = data.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        self.status = int(lines[0].split()[1])
        self.headers = {k.lower(): v.strip() for k, _, v in (x.partition(":") for x in lines[1:])}
        if self.headers.get("transfer-encoding") == "chunked":
            rest, body = body, b""
            while rest:
                size, _, rest = rest.partition(b"\r\n")
                n = int(size, 16)
                body, rest = body + rest[:n], rest[n + 2:]
        self.body = body


def connect(server):
    s = socket.create_connection((server.host, server.port), timeout=WAIT_S)
    return s


def read_all(s):
    data = b""
    while True:
        block = s.recv(65536)
        if not block:
            return data
        data += block


def request(path, body, method="POST", close=True):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n"
    return (head + ("Connection: close\r\n" if close else "") + "\r\n").encode() + data


def ask(server, raw):
    with connect(server) as s:
        s.sendall(raw)
        return Answer(read_all(s))


def check_error(a, statuses):
    assert a.status in statuses, (a.status, a.body[:300])
    e = json.loads(a.body)["error"]
    assert e["message"] and e["type"] and "code" in e and "param" in e, a.body


def check_json(a):
    assert a.status == 200, (a.status, a.body[:300])
    return json.loads(a.body)


def check_stream(a):
    assert a.status == 200 and a.headers["content-type"].startswith("text/event-stream"), (a.status, a.body[:300])
    assert a.body.rstrip().endswith(b"data: [DONE]"), a.body[-200:]
    for line in a.body.splitlines():
        if line.startswith(b"data: {"):
            assert "error" not in json.loads(line[6:]), line


# ---- kinds of requests: (weight, function of server and random numbers) ----

def say(rnd):
    return [{"role": "user", "content": " ".join(rnd.choice(["one", "cat", "the", "über", "🙂"]) for _ in range(rnd.randint(1, 30)))}]


def some(rnd, **more):
    """Settings that a client may send."""
    body = {"max_tokens": rnd.randint(1, 10), **more}
    for name, value in (("temperature", rnd.random()), ("top_p", rnd.random()), ("top_k", rnd.randint(0, 50)), ("seed", rnd.randint(0, 99)),
                        ("stop", ["zz", " the"]), ("presence_penalty", 0.5), ("logit_bias", {"5": -100}), ("min_p", 0.05)):
        if rnd.random() < 0.2:
            body[name] = value
    return body


def chat(server, rnd):
    check_json(ask(server, request("/v1/chat/completions", some(rnd, messages=say(rnd), n=rnd.choice([1, 1, 1, 3])))))


def chat_stream(server, rnd):
    check_stream(ask(server, request("/v1/chat/completions", some(rnd, messages=say(rnd), stream=True, stream_options={"include_usage": True}))))


def completion(server, rnd):
    body = some(rnd, prompt=rnd.choice(["Once", ["a", "b c"], [5, 6, 7]]), logprobs=rnd.choice([None, 2]))
    if body["logprobs"] is None:
        body.update(n=2, best_of=3)
    check_json(ask(server, request("/v1/completions", body)))


def completion_stream(server, rnd):
    check_stream(ask(server, request("/v1/completions", some(rnd, prompt="Once upon", stream=True, echo=rnd.random() < 0.5))))


def response(server, rnd):
    a = ask(server, request("/v1/responses", {"input": "one two", "max_output_tokens": 5, "stream": rnd.random() < 0.5}))
    assert a.status == 200, a.body[:300]


def embedding(server, rnd):
    check_json(ask(server, request("/v1/embeddings", {"input": ["a", "b c d"], "encoding_format": rnd.choice(["float", "base64"])})))


def form(server, rnd):
    schema = {"type": "object", "properties": {"k" + str(rnd.randint(0, 40)): {"type": "integer"}}, "additionalProperties": False}
    more = rnd.choice([{"regex": "[ab]{2}"}, {"response_format": {"type": "json_object"}}, {"json_schema": schema},
                       {"grammar": 'root ::= "a" | "b"'}, {"tools": TOOLS, "tool_choice": "required"}])
    check_json(ask(server, request("/v1/chat/completions", {"messages": say(rnd), "max_tokens": 20, **more})))


def small(server, rnd):
    check_json(ask(server, request("/tokenize", {"content": "Once upon a time", "with_pieces": True})))
    check_json(ask(server, request("/detokenize", {"tokens": [5, 6, 7]})))
    check_json(ask(server, request("/apply-template", {"messages": say(rnd)})))


def page(server, rnd):
    path = rnd.choice(["/", "/health", "/metrics", "/weft/state", "/weft/profile", "/weft/model", "/weft/graph.svg", "/v1/models", "/slots"])
    assert ask(server, request(path, b"", "GET")).status == 200, path


def keep_alive(server, rnd):
    """Several on one connection."""
    with connect(server) as s:
        for i in range(3):
            s.sendall(request("/v1/completions", {"prompt": "a", "max_tokens": 2}, close=i == 2))
            if i < 2:
                data = b""
                while b"\r\n\r\n" not in data or len(data.partition(b"\r\n\r\n")[2]) < int(
                        [x for x in data.split(b"\r\n") if x.lower().startswith(b"content-length")][0].split()[1]):
                    data += s.recv(65536)
                check_json(Answer(data))
        check_json(Answer(read_all(s)))


def wrong_field(server, rnd):
    body = {"messages": say(rnd), "max_tokens": 2}
    body.update(rnd.choice([{"nonsense": 1}, {"temperature": "hot"}, {"n": 0}, {"stop": [""]}, {"model": "nobody"}, {"messages": []}, {"tools": 7},
                            {"store": True}, {"regex": "("}, {"json_schema": {"type": "nothing"}}, {"logit_bias": {"x": 1}}, {"reasoning_effort": "high"},
                            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
                            {"messages": [{"role": "user", "content": "long " * 2000}]}]))
    check_error(ask(server, request("/v1/chat/completions", body)), (400, 404))


def wrong_json(server, rnd):
    good = bytearray(json.dumps({"prompt": "a", "max_tokens": 2}).encode())
    kind = rnd.randint(0, 3)
    if kind == 0:
        good = good[:rnd.randint(0, len(good) - 1)]
    elif kind == 1:
        good = b"[" * rnd.randint(1, 500)
    elif kind == 2:
        good = rnd.randbytes(rnd.randint(1, 2000))
    else:
        good[rnd.randrange(len(good))] = rnd.randrange(256)
    a = ask(server, request("/v1/completions", bytes(good)))
    if a.status != 200 or kind < 3:  # a letter of the prompt may have changed, which is no fault
        check_error(a, (400, 404))


def wrong_route(server, rnd):
    path, method = rnd.choice([("/nothing", "POST"), ("/v1/chat/completions", "GET"), ("/v1/models", "POST"), ("/v1/models/nobody", "GET"),
                               ("/../../etc/passwd", "GET"), ("/health", "DELETE")])
    check_error(ask(server, request(path, b"", method)), (404, 405))


def too_large(server, rnd):
    check_error(ask(server, request("/v1/completions", b" " * (300 << 10))), (413,))


def not_http(server, rnd):
    """libmicrohttpd answers these by itself, or closes: it may not take the server with it."""
    with connect(server) as s:
        try:
            s.sendall(rnd.choice([rnd.randbytes(200), b"\r\n\r\n\r\n", b"GET\r\n\r\n", b"POST /v1/completions HTTP/9.9\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 9000 + b"\r\n",
                                  b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
                                  b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"]))
            s.shutdown(socket.SHUT_WR)
            read_all(s)
        except OSError:
            pass


def stops_sending(server, rnd):
    """The body never comes."""
    with connect(server) as s:
        s.sendall(request("/v1/completions", b"{" + b" " * 500)[:-rnd.randint(1, 400)])


def goes(server, rnd):
    """A client that leaves at some point of a long answer."""
    with connect(server) as s:
        s.sendall(request("/v1/completions", {"prompt": "Once upon a time", "max_tokens": 400, "ignore_eos": True, "stream": rnd.random() < 0.6}))
        when = rnd.random()
        if when > 0.3:
            s.settimeout(when * 0.2)
            try:
                s.recv(1000)
            except socket.timeout:
                pass
        if rnd.random() < 0.3:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # with a reset


def goes_by_halves(server, rnd):
    with connect(server) as s:
        s.sendall(request("/v1/completions", {"prompt": "Once upon a time", "max_tokens": 400, "ignore_eos": True}))
        s.shutdown(socket.SHUT_WR)
        try:
            read_all(s)  # a 503, or nothing
        except OSError:
            pass


def deadline(server, rnd):
    a = ask(server, request("/v1/completions", {"prompt": "Once", "max_tokens": 450, "ignore_eos": True, "timeout_ms": 1}))
    check_error(a, (504,))


KINDS = ((20, chat), (14, chat_stream), (14, completion), (10, completion_stream), (5, response), (5, embedding), (8, form), (3, small), (5, page), (3, keep_alive),
         (7, wrong_field), (6, wrong_json), (3, wrong_route), (1, too_large), (3, not_http), (2, stops_sending), (8, goes), (2, goes_by_halves), (1, deadline))


class Soak:
    def __init__(self, server, options):
        self.server, self.options = server, options
        self.lock, self.done, self.counts, self.faults = threading.Lock(), 0, {}, []
        self.warm_kib = None

    def client(self, seed):
        rnd = random.Random(seed)
        while True:
            with self.lock:
                if self.done >= self.options.requests or self.faults:
                    return
                self.done += 1
                number = self.done
            kind = rnd.choices([f for _, f in KINDS], [w for w, _ in KINDS])[0]
            try:
                kind(self.server, rnd)
            except Exception as e:  # whatever it is, the run has failed
                with self.lock:
                    self.faults.append(f"{kind.__name__}, number {number}: {type(e).__name__} {e}")
                return
            with self.lock:
                self.counts[kind.__name__] = self.counts.get(kind.__name__, 0) + 1
                if self.warm_kib is None and number >= WARM * self.options.requests:
                    self.warm_kib = self.server.rss_kib()

    def run(self):
        threads = [threading.Thread(target=self.client, args=(self.options.seed * 1000 + i,)) for i in range(self.options.clients)]
        begin = time.time()
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not self.faults, self.faults
        assert self.server.process.poll() is None, "the server is gone"
        print(f"{self.done} requests in {time.time() - begin:.0f} s:", ", ".join(f"{n} {k}" for k, n in sorted(self.counts.items())))

    def check_end(self):
        s = self.server
        end = time.time() + 20
        while time.time() < end and (s.metric("weft_http_requests_under_way") or s.metric("weft_answers_running") or s.metric("weft_answers_waiting")):
            time.sleep(0.1)
        for name in ("weft_http_requests_under_way", "weft_answers_running", "weft_answers_waiting", "weft_answers_preempted"):
            assert s.metric(name) == 0, name
        assert s.metric("weft_pages_free") + s.metric("weft_pages_kept") == s.metric("weft_pages"), "pages are lost"
        if self.counts.get("form", 0) > 20:
            assert s.metric("weft_form_hits_total") > 0, "equal forms are compiled again"
        cancelled, gone = s.metric('weft_answers_ended_total{end="cancelled"}'), self.counts.get("goes", 0)
        print(f"{gone} clients went in the middle, {cancelled:.0f} answers were cancelled")
        assert cancelled >= gone * 0.5, "work goes on for clients that went"  # others had gone before their work began
        kib = s.rss_kib()
        print(f"memory: {self.warm_kib / 1024:.1f} MiB after the warm-up, {kib / 1024:.1f} MiB at the end")
        if not self.options.no_rss:
            assert kib - self.warm_kib < RSS_KIB, "memory grows"
        before = s.cpu_s()
        time.sleep(IDLE_S)
        cpu = s.cpu_s() - before
        print(f"idle: {cpu:.2f} s of processor time in {IDLE_S} s")
        assert cpu <= IDLE_CPU_S or self.options.no_rss, "it is busy with nothing"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("weft")
    p.add_argument("model")
    p.add_argument("--requests", type=int, default=500)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--clients", type=int, default=8)
    p.add_argument("--no-rss", action="store_true")
    o = p.parse_args()
    with Server(o.weft, "-m", o.model, "-c", "512", "-np", "6", "--chat-template", "chatml", "--embeddings", "--max-body", "256K", "--threads-http", "2") as server:
        soak = Soak(server, o)
        soak.run()
        soak.check_end()
    return 0


if __name__ == "__main__":
    sys.exit(main())
