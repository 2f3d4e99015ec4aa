"""live_page.py - the page on a real server: live_page.py WEFT MODEL [--shots FOLDER]. An answer comes, the state moves, the model
shows with its graph and its profile, nothing goes wrong and nothing is asked of another host. Skipped where there is no Chromium."""

import json
import os
import sys
import threading
import urllib.request

import browser

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "http"))
from server import Server


def generate(url, model):
    """Some load, so that there is something to see."""
    body = {"model": model, "prompt": "There was", "max_tokens": 400, "ignore_eos": True}
    with urllib.request.urlopen(urllib.request.Request(url + "v1/completions", json.dumps(body).encode()), timeout=120) as r:
        r.read()


def main(args):
    shots = args[args.index("--shots") + 1] if "--shots" in args else None
    program = browser.find()
    if not program:
        print("skipped: no chromium here (Debian: apt install chromium; WEFT_CHROMIUM names one)")
        return 77
    with Server(args[0], "-m", args[1], "-c", "512", "-np", "4") as s:
        return walk(program, s.url + "/", s.model, shots)


def walk(program, url, model, shots):
    def shot(name):
        if shots:
            os.makedirs(shots, exist_ok=True)
            t.shot(os.path.join(shots, "live-" + name + ".png"))

    chromium = browser.Browser(program)
    try:
        t = browser.Page(chromium)
        t.open(url)
        t.wait("document.getElementById('model').value !== ''")
        t.click("#settings-open")
        t.click("#set-max_completion_tokens")
        t.type("40")
        t.key("Escape")
        t.click("#input")
        t.type("Once upon a time")
        t.key("Enter")
        t.wait("document.querySelector('.assistant .regenerate')", 120)
        said = t.text(".assistant .body")
        print("it says:", said)
        assert said and not t.text(".assistant .fault"), t.text(".assistant .fault")
        shot("chat")
        t.click("#tab-state")
        t.wait("document.querySelector('.tier') && /running \\d/.test(document.getElementById('plots').innerText)")
        load = [threading.Thread(target=generate, args=(url, model)) for _ in range(12)]
        for x in load:
            x.start()
        t.wait("/written [1-9]/.test(document.getElementById('plots').innerText)", 60)
        shot("state")
        for x in load:
            x.join()
        t.click("#tab-model")
        t.wait("document.querySelector('.source') && document.querySelector('#graph img')?.naturalWidth > 0")
        t.wait("/decode .* ms a token/.test(document.getElementById('profile-line').innerText)")
        t.wait("document.querySelectorAll('.source .share span').length > 10")
        t.eval("document.getElementById('source').scrollTop = document.querySelector('.source .share span').closest('tr').offsetTop - 60")
        t.eval("new Promise((done) => setTimeout(done, 300))")  # it is drawn
        print("profile:", t.text("#profile-line"))
        shot("model")
        outside = [u for u in t.requests if not u.startswith((url, "blob:", "data:", "about:"))]
        assert (t.faults, outside) == ([], []), (t.faults, outside)
    finally:
        chromium.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
