"""browser.py - a headless Chromium, driven through its debugging pipe: real clicks and keys, screenshots.

The protocol is JSON with a zero byte behind each message, on file descriptors 3 (to Chromium) and 4 (from it)."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "chromium-headless-shell")
WAIT_S = 15


def find():
    """The program, or None."""
    return os.environ.get("WEFT_CHROMIUM") or next((p for p in map(shutil.which, NAMES) if p), None)


class Browser:
    def __init__(self, program):
        self.folder = tempfile.mkdtemp(prefix="weft-page-")
        read_in, self.out = os.pipe()
        self.inp, write_out = os.pipe()
        # both far from 3 and 4, which they become in the child
        read_in, write_out = (fcntl.fcntl(f, fcntl.F_DUPFD, 20) for f in (read_in, write_out))

        def pipes():
            os.dup2(read_in, 3)
            os.dup2(write_out, 4)

        flags = ["--headless=new", "--remote-debugging-pipe", "--user-data-dir=" + self.folder, "--no-first-run",
                 "--no-default-browser-check",
                 "--disable-gpu", "--disable-dev-shm-usage", "--disable-extensions", "--disable-background-networking",
                 "--disable-component-update",
                 "--hide-scrollbars", "--lang=en", "--force-color-profile=srgb"]
        if os.getuid() == 0:
            flags.append("--no-sandbox")
        self.process = subprocess.Popen([program, *flags, "about:blank"], preexec_fn=pipes, pass_fds=(3, 4),
                                        stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(read_in)
        os.close(write_out)
        self.next_id, self.buffer, self.events = 0, b"", []

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def receive(self, end):
        """The next message, or None at the time `end`."""
        while b"\0" not in self.buffer:
            left = end - time.time()
            if left <= 0 or not select.select([self.inp], [], [], left)[0]:
                return None
            data = os.read(self.inp, 1 << 16)
            if not data:
                raise RuntimeError("Chromium has ended")
            self.buffer += data
        one, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(one)

    def call(self, method, params=None, session=None):
        self.next_id += 1
        message = {"id": self.next_id, "method": method, "params": params or {}}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data):]
        end = time.time() + 4 * WAIT_S
        while True:
            got = self.receive(end)
            if got is None:
                raise RuntimeError(method + " was not answered")
            if got.get("id") == self.next_id:
                if "error" in got:
                    raise RuntimeError(method + ": " + got["error"]["message"])
                return got["result"]
            if "method" in got:
                self.events.append(got)


class Page:
    """A tab. What goes wrong in it (exceptions, refusals of the policy) is in `faults`, what it asked of the network in
    `requests`."""

    def __init__(self, browser, width=1200, height=800, scripts=True):
        self.browser = browser
        self.context = browser.call("Target.createBrowserContext")["browserContextId"]  # storage of its own
        target = browser.call("Target.createTarget", {"url": "about:blank",
                                                      "browserContextId": self.context})["targetId"]
        self.session = browser.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "DOM"):
            self.call(domain + ".enable")
        self.size(width, height)
        if not scripts:
            self.call("Emulation.setScriptExecutionDisabled", {"value": True})

    def call(self, method, params=None):
        return self.browser.call(method, params, self.session)

    def close(self):
        self.browser.call("Target.disposeBrowserContext", {"browserContextId": self.context})

    def size(self, width, height, phone=False):
        self.call("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1,
                                                         "mobile": phone})

    def dark(self, on):
        self.call("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme",
                                                               "value": "dark" if on else "light"}]})

    def open(self, url):
        self.call("Page.navigate", {"url": url})
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def reload(self):
        self.eval("window.isOld = true")
        self.call("Page.reload")
        self.wait("!window.isOld && document.readyState === 'complete'")

    def events(self, method):
        return [e["params"] for e in self.browser.events if e["method"] == method and e.get("sessionId") == self.session]

    @property
    def faults(self):
        thrown = [e["exceptionDetails"] for e in self.events("Runtime.exceptionThrown")]
        thrown = [e.get("exception", {}).get("description") or e["text"] for e in thrown]
        # the network says of every 4xx and 5xx that it was one; tests ask for those on purpose
        logged = [e["entry"] for e in self.events("Log.entryAdded")]
        logged = [e["text"] for e in logged if e["level"] == "error" and e["source"] != "network"]
        return thrown + logged

    @property
    def requests(self):
        return [e["request"]["url"] for e in self.events("Network.requestWillBeSent")]

    # ---- looking ----

    def eval(self, script):
        got = self.call("Runtime.evaluate", {"expression": script, "returnByValue": True, "awaitPromise": True})
        if "exceptionDetails" in got:
            raise AssertionError(script + ": " + str(got["exceptionDetails"].get("exception", {}).get("description")))
        return got["result"].get("value")

    def wait(self, script, seconds=WAIT_S):
        end = time.time() + seconds
        while True:
            try:
                got = self.eval(script)
            except RuntimeError:  # the page is on its way to another
                got = None
            if got or got == {}:  # what an element looks like from here
                return got
            if time.time() > end:
                raise AssertionError("never: " + script + "\n  the page says: " + str(self.eval("document.body.innerText"))[:1500])
            time.sleep(0.03)

    def node(self, selector, work):
        """What work(node) gives, of an element by its node id: no script of the page runs. A node id lives as long as its
        document: where another comes before the work is done, all begins anew."""
        end = time.time() + WAIT_S
        while True:
            why = "no " + selector
            try:
                root = self.call("DOM.getDocument")["root"]["nodeId"]
                node = self.call("DOM.querySelector", {"nodeId": root, "selector": selector})["nodeId"]
                if node:
                    return work(node)
            except RuntimeError as e:
                why = str(e)
            if time.time() > end:
                raise AssertionError(why)
            time.sleep(0.03)

    def text(self, selector):
        return self.eval("(document.querySelector(%s) || {innerText: null}).innerText" % json.dumps(selector))

    def count(self, selector):
        return self.eval("document.querySelectorAll(%s).length" % json.dumps(selector))

    def shot(self, path):
        data = self.call("Page.captureScreenshot", {"format": "png"})["data"]
        with open(path, "wb") as f:
            f.write(base64.b64decode(data))

    # ---- doing ----

    def place(self, selector):
        """The middle of an element that can be seen and is not covered."""
        return self.wait("""(() => {
            const n = typeof %(s)s === "string" ? document.querySelector(%(s)s) : null;
            if (!n) return null;
            n.scrollIntoView({block: "nearest", inline: "nearest"});
            const r = n.getBoundingClientRect();
            if (r.width === 0 || r.height === 0) return null;
            const x = r.left + r.width / 2, y = r.top + r.height / 2;
            const hit = document.elementFromPoint(x, y);
            return hit && (n === hit || n.contains(hit) || hit.contains(n)) ? [x, y] : null;
        })()""" % {"s": json.dumps(selector)})

    def click(self, selector, times=1):
        x, y = self.place(selector)
        self.call("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": x, "y": y})
        for n in range(1, times + 1):
            for kind in ("mousePressed", "mouseReleased"):
                self.call("Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, "button": "left", "clickCount": n})

    def type(self, text):
        self.call("Input.insertText", {"text": text})

    def key(self, key, alt=False, shift=False, ctrl=False):
        code = {"Escape": 27, "Enter": 13, "ArrowUp": 38, "ArrowRight": 39, "ArrowLeft": 37, "Tab": 9, "F2": 113,
                "Delete": 46, "a": 65}.get(key, ord(key[0].upper()))
        name = "Key" + key.upper() if key.isalpha() and len(key) == 1 else "Digit" + key if key.isdigit() else key
        # what a key does besides its letter is said by name
        params = {"commands": ["selectAll"] if ctrl and key == "a" else [], "key": key, "code": name, "windowsVirtualKeyCode": code, "modifiers": alt * 1 + ctrl * 2 + shift * 8}
        if key == "Enter":
            params["text"] = "\r"
        elif len(key) == 1 and not alt and not ctrl:
            params["text"] = key
        self.call("Input.dispatchKeyEvent", {"type": "keyDown", **params})
        params.pop("text", None)
        params.pop("commands")
        self.call("Input.dispatchKeyEvent", {"type": "keyUp", **params})

    def files(self, selector, paths):
        self.node(selector, lambda node: self.call("DOM.setFileInputFiles", {"nodeId": node, "files": paths}))
