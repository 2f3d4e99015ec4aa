"""live_page.py - the page on a server that runs: live_page.py URL [--shots FOLDER]. An answer comes, the state moves, the model
shows, nothing goes wrong and nothing is asked of another host. Skipped where there is no Chromium."""

import os
import sys

import browser


def main(args):
    shots = args[args.index("--shots") + 1] if "--shots" in args else None
    url = args[0].rstrip("/") + "/"
    program = browser.find()
    if not program:
        print("skipped: no chromium here (Debian: apt install chromium; WEFT_CHROMIUM names one)")
        return 77

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
        shot("state")
        t.click("#tab-model")
        t.wait("document.querySelector('.source') && document.querySelector('#graph img').naturalWidth > 0")
        t.wait("document.getElementById('profile-line').innerText !== ''")
        print("profile:", t.text("#profile-line"))
        shot("model")
        outside = [u for u in t.requests if not u.startswith((url, "blob:", "data:", "about:"))]
        assert (t.faults, outside) == ([], []), (t.faults, outside)
    finally:
        chromium.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
