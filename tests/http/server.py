"""server.py - a `weft serve` of one's own, for tests: started on a port that the system chooses, ended with SIGTERM."""
import json
import os
import signal
import subprocess
import tempfile
import urllib.request

STARTS_S = 120


class Server:
    """With Server([weft, "-m", model, ..]) as s: s.url, s.pid. The process has to end with 0, unless the test failed itself."""

    def __init__(self, weft, *flags):
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen([weft, "serve", "--port", "0", "--json", *flags], stdout=subprocess.PIPE,
                                        stderr=self.errors)
        self.pid = self.process.pid
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError("weft serve did not start: " + self.said())
        where = json.loads(line)
        self.host, self.port, self.model = where["host"], where["port"], where["model"]
        self.url = f"http://{self.host}:{self.port}"

    def said(self):
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=30) as r:
            return r.read().decode()

    def metric(self, name):
        """A number of /metrics; name with its labels."""
        for line in self.get("/metrics").splitlines():
            if line.startswith(name + " "):
                return float(line.split()[-1])
        raise AssertionError("no metric " + name)

    def rss_kib(self):
        with open(f"/proc/{self.pid}/status") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))

    def cpu_s(self):
        """Seconds of processor time until now, of all threads."""
        with open(f"/proc/{self.pid}/stat") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(90)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            status = "no end: it was killed"
        if kind is None and status != 0:
            raise AssertionError(f"weft serve ended with {status}: {self.said()}")
        if kind is not None:
            print("weft serve said:", self.said()[-4000:])
