"""test_page.py - the page in headless Chromium, with a server for tests behind it, by real clicks and keys.

test_page.py FOLDER [--shots FOLDER] [NAME...]: FOLDER has index.html and headers.txt of the build; NAMEs are tests below.
Skipped where there is no Chromium (Debian: apt install chromium); WEFT_CHROMIUM names another."""

import glob
import json
import os
import re
import shutil
import sys
import tempfile
import time
import traceback

import browser
from fake_server import Fake

TESTS = []


def test(f):
    TESTS.append(f)
    return f


def same(got, expected):
    assert got == expected, "got %r, expected %r" % (got, expected)


LAST = "#log .assistant:last-child"


class Case:
    """A server and a tab on its page."""

    def __init__(self, chromium, html, headers, shots):
        self.chromium, self.html, self.headers, self.shots_at = chromium, html, headers, shots
        self.server = self.fresh_server()
        self.tab = None

    def fresh_server(self, port=0):
        return Fake(self.html, self.headers, port)

    def open(self, **how):
        self.tab = browser.Page(self.chromium, **how)
        self.tab.open(self.server.url)
        self.tab.wait("!document.getElementById('app').hidden && document.getElementById('model').value !== ''")
        return self.tab

    def say(self, text):
        self.tab.click("#input")
        self.tab.type(text)
        self.tab.click("#send")

    def done(self):
        """Waits for the end of the answer."""
        self.tab.wait("!document.getElementById('send').hidden && !document.querySelector('.writing')")

    def ask(self, text):
        self.say(text)
        self.done()

    def shot(self, name):
        if self.shots_at:
            self.tab.shot(os.path.join(self.shots_at, name + ".png"))

    def end(self):
        if self.tab:
            faults = self.tab.faults
            outside = [u for u in self.tab.requests if not u.startswith((self.server.url, "blob:", "data:", "about:"))]
            self.tab.close()
            same([faults, outside], [[], []])


# ---- chat ----

@test
def streams(c):
    t = c.open()
    c.shot("empty")
    c.say("tell a story")
    t.wait("document.querySelector('%s .body').innerText.length > 3" % LAST)
    c.done()
    same(t.text(LAST + " p"), "Once upon a time, there was a loom.")
    same([t.text(LAST + " strong"), t.count(LAST + " li"), t.text(LAST + " pre")], ["loom", 2, "int x = 1; // one"])
    same(t.text(LAST + " .code-comment"), "// one")
    assert "15 tokens" in t.text(LAST + " .deeds") and "prompt 12, 8 of them known" in t.text(LAST + " .deeds")
    same(c.server.bodies()[0], {"model": "tiny", "messages": [{"role": "user", "content": "tell a story"}],
                                "stream": True, "stream_options": {"include_usage": True}})
    same(t.text("#talk-list .talk"), "tell a story")
    c.ask("and another story")
    same([m["role"] for m in c.server.bodies()[1]["messages"]], ["user", "assistant", "user"])
    c.shot("chat")


@test
def stops(c):
    t = c.open()
    c.say("slow")
    t.wait("document.querySelector('%s .body').innerText.includes('word3')" % LAST)
    c.shot("writing")
    t.click("#stop")
    c.done()
    assert "stopped" in t.text(LAST + " .deeds")
    end = time.time() + 10
    while c.server.gone == 0 and time.time() < end:
        time.sleep(0.05)
    same(c.server.gone, 1)
    c.say("slow")
    t.wait("document.querySelector('%s .body').innerText.includes('word3')" % LAST)
    t.key("Escape")
    c.done()


@test
def regenerates(c):
    t = c.open()
    c.ask("tell a story")
    t.click(LAST + " .regenerate")
    c.done()
    t.wait("document.querySelector('%s .versions')" % LAST)
    same(t.text(LAST + " .versions").replace("\n", ""), "‹2/2›")
    t.click(LAST + " .versions button")
    t.wait("document.querySelector('%s .versions').innerText.includes('1/2')" % LAST)
    same([c.server.bodies()[0], len(c.server.bodies())], [c.server.bodies()[1], 2])
    t.key("r", alt=True)
    t.wait("document.querySelector('%s .versions') && document.querySelector('%s .versions').innerText.includes('3/3')" % (LAST, LAST))


@test
def edits(c):
    t = c.open()
    c.ask("tell a story")
    c.ask("another story")
    same(t.count("#log .message"), 4)
    t.click("#log .user .deeds button:last-child")
    t.wait("document.activeElement.tagName === 'TEXTAREA' && document.activeElement.id !== 'input'")
    assert "3 messages" in t.text("#log .edit")
    t.key("a", ctrl=True)
    t.type("tell a better story")
    t.click("#log .edit-send")
    c.done()
    same(t.count("#log .message"), 2)
    same(c.server.bodies()[-1]["messages"], [{"role": "user", "content": "tell a better story"}])
    t.click("#input")
    t.key("ArrowUp")
    t.wait("document.activeElement.value === 'tell a better story'")
    t.key("Escape")
    t.wait("!document.querySelector('#log .edit')")


@test
def is_safe(c):
    t = c.open()
    c.ask("hostile")
    c.shot("hostile")
    time.sleep(0.3)
    same(t.eval("typeof window.pwned"), "undefined")
    same(t.count("#log script, #log img, #log iframe, #log svg, #log style, #log base, #log form, #log [onerror], #log [onload]"), 0)
    links = t.eval("Array.from(document.querySelectorAll('#log a'), a => [a.getAttribute('href'), a.rel, a.target])")
    same(links, [[u, "noopener noreferrer nofollow", "_blank"] for u in
                 ("https://evil.example/pixel.png", "https://good.example/a?b=c", "https://auto.example/",
                  "https://evil.example/", "https://evil.example/")])
    assert "<script>window.pwned = 1</script>" in t.text(LAST)
    same(t.eval("getComputedStyle(document.body).display"), "block")


@test
def policy_holds(c):
    """Were the renderer wrong, the policy would still let nothing run, load or leave."""
    t = c.open()
    same(t.eval("try { document.body.innerHTML = '<b>x</b>'; 'made' } catch (e) { e.name }"), "TypeError")
    # a script that is put together from elements is stopped by one rule or the other
    t.eval("""const script = document.createElement('script');
        script.append('window.pwned = 1');
        document.body.append(script);""")
    same(t.eval("typeof window.pwned"), "undefined")
    same(t.eval("fetch('https://evil.example/').then(() => 'sent', e => e.name)"), "TypeError")
    same(t.eval("""new Promise(done => { const i = new Image(); i.onload = () => done('loaded'); i.onerror = () => done('refused');
        i.src = 'https://evil.example/x.png'; })"""), "refused")
    same(t.eval("typeof window.pwned"), "undefined")
    c.tab.close()
    c.tab = None  # these refusals are wanted


@test
def thinks(c):
    t = c.open()
    c.ask("think")
    same(t.eval("document.querySelector('%s .thought div').textContent" % LAST), "Let me <b>see</b>.")
    same(t.text(LAST + " .body"), "Done.")
    assert "cut: it reached the limit" in t.text(LAST + " .deeds")


@test
def tells_failures(c):
    t = c.open()
    for question, words in (("bad", "top_k is 0, expected 1 or more"), ("busy", "the queue is full; try again in 7 s"),
                            ("broken", "no pages left"), ("cut", "the connection broke")):
        t.click("#talk-new")
        c.ask(question)
        got = t.text(LAST + " .fault")
        assert got == words or (question == "cut" and got == "the stream ended too early"), got
    same(t.text(LAST + " .body"), "Half an")
    port = c.server.server_address[1]
    c.server.kill()
    t.click("#talk-new")
    c.ask("hello")
    same(t.text(LAST + " .fault"), "the server does not answer")
    c.shot("failure")
    c.server = c.fresh_server(port)
    t.click(LAST + " .regenerate")
    c.done()
    same([t.text(LAST + " p"), t.count(LAST + " .versions")], ["Once upon a time, there was a loom.", 0])


@test
def asks_for_a_key(c):
    c.server.key = "secret"
    t = c.tab = browser.Page(c.chromium)
    t.open(c.server.url)
    t.wait("document.getElementById('key-dialog').open")
    c.shot("key")
    t.type("secret")
    t.key("Enter")
    t.wait("document.getElementById('model').value === 'tiny'")
    c.ask("tell a story")
    same([a for m, p, b, a in c.server.asked if p.endswith("completions")], ["Bearer secret"])
    same(t.eval("JSON.stringify(localStorage).includes('secret')"), False)
    c.server.key = "other"
    c.say("another story")
    t.wait("document.getElementById('key-dialog').open")
    t.type("other")
    t.click("#key-use")
    t.wait("document.querySelector('%s .regenerate') && document.querySelector('%s li')" % (LAST, LAST))
    same([t.text(LAST + " p"), t.text(LAST + " .fault")], ["Once upon a time, there was a loom.", ""])


@test
def continues_texts(c):
    c.server.chats = False
    t = c.open()
    assert "no chat template" in t.text("#log")
    c.ask("Once")
    same(c.server.bodies()[0]["prompt"], "Once")
    same(t.text(LAST + " p"), "Once upon a time, there was a loom.")


# ---- conversations, settings, files ----

@test
def keeps_conversations(c):
    t = c.open()
    c.ask("first story")
    t.click("#talk-new")
    same(t.count("#log .message"), 0)
    c.ask("second story")
    same(t.eval("Array.from(document.querySelectorAll('#talk-list .talk'), n => n.innerText)"), ["second story",
                                                                                                 "first story"])
    t.click("#talk-list li:last-child .talk")
    t.wait("document.querySelector('#log .user .body').innerText === 'first story'")
    t.reload()
    t.wait("document.querySelectorAll('#talk-list .talk').length === 2 && document.querySelectorAll('#log .message').length === 2")
    same(t.text("#log .user .body"), "second story")
    # rename, by the keyboard
    t.eval("document.querySelector('#talk-list .talk').focus()")
    t.key("F2")
    t.wait("document.getElementById('ask-dialog').open")
    t.key("a", ctrl=True)
    t.type("<i>named</i>")
    t.key("Enter")
    t.wait("document.querySelector('#talk-list .talk').innerText === '<i>named</i>'")
    # delete
    t.click("#talk-list li:first-child button[aria-label=Delete]")
    t.wait("document.getElementById('ask-dialog').open")
    t.click("#ask-yes")
    t.wait("document.querySelectorAll('#talk-list .talk').length === 1 && document.querySelector('#log .user .body').innerText === 'first story'")
    t.click("#talks-clear")
    t.click("#ask-yes")
    t.wait("document.querySelectorAll('#talk-list .talk').length === 0")
    same(t.eval("Object.keys(localStorage).filter(k => k.startsWith('weft.talk.')).length"), 0)


@test
def answers_in_the_background(c):
    t = c.open()
    c.say("slow")
    t.wait("document.querySelector('%s .body').innerText.includes('word3')" % LAST)
    t.click("#talk-new")
    c.ask("tell a story")
    same(t.text(LAST + " p"), "Once upon a time, there was a loom.")
    t.click("#talk-list li:last-child .talk")
    n = t.eval("document.querySelector('%s .body').innerText.length" % LAST)
    t.wait("document.querySelector('%s .body').innerText.length > %d" % (LAST, n))
    # deleted while it is written: it stops, and does not come back
    t.click("#talk-list li.here button[aria-label=Delete]")
    t.click("#ask-yes")
    t.wait("document.querySelectorAll('#talk-list .talk').length === 1")
    time.sleep(0.3)
    same([t.count("#talk-list .talk"),
          t.eval("Object.keys(localStorage).filter(k => k.startsWith('weft.talk.')).length")], [1, 1])


@test
def damaged_store(c):
    t = c.open()
    t.eval("localStorage.setItem('weft.talk.x', '{'); localStorage.setItem('weft.talk.1', JSON.stringify({id: '1', messages: [7, {role: 'user', text: 3}]}))")
    t.reload()
    t.wait("document.querySelectorAll('#talk-list .talk').length === 1")
    same(t.text("#talk-list .talk"), "Conversation")


@test
def settings(c):
    t = c.open()
    t.click("#settings-open")
    t.wait("document.activeElement.id === 'set-system'")
    t.type("Be brief.")
    t.click("#set-temperature")
    t.type("0.7")
    t.click("#set-top_k")
    t.type("4.5")
    same(t.text("#set-top_k-help"), "expected a whole number")
    c.shot("settings")
    t.key("Escape")
    t.wait("document.getElementById('settings').hidden")
    t.eval("document.getElementById('model').focus()")
    t.eval("const m = document.getElementById('model'); m.value = 'tiny:pirate'; m.dispatchEvent(new Event('change'))")
    c.ask("tell a story")
    body = c.server.bodies()[0]
    same([body["model"], body["temperature"], "top_k" in body, body["messages"][0]], ["tiny:pirate", 0.7, False,
                                                                                      {"role": "system",
                                                                                       "content": "Be brief."}])
    t.reload()
    t.wait("document.getElementById('model').value === 'tiny:pirate' && document.querySelectorAll('#log .message').length === 2")
    same(t.eval("[document.getElementById('set-system').value, document.getElementById('set-temperature').value]"),
         ["Be brief.", "0.7"])


@test
def attaches_files(c):
    t = c.open()
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, n) for n in ("notes.txt", "image.bin")]
        with open(paths[0], "w") as f:
            f.write("warp and weft\n")
        with open(paths[1], "wb") as f:
            f.write(b"\xff\xfe\x00")
        t.files("#file-input", paths)
        t.wait("document.querySelector('#files li') && document.querySelector('.notice')")
    same([t.count("#files li"), "notes.txt" in t.text("#files"),
          "image.bin is not text in UTF-8." in t.text("#notices")], [1, True, True])
    c.shot("attached")
    c.ask("what is it, a story")
    same(c.server.bodies()[0]["messages"][0]["content"], "notes.txt:\n```\nwarp and weft\n```\n\nwhat is it, a story")
    same([t.count("#files li"), t.count("#log .files li")], [0, 1])


@test
def stays_at_the_end(c):
    t = c.open()
    c.ask("long")
    same(t.eval("const l = document.getElementById('log'); l.scrollHeight - l.scrollTop - l.clientHeight < 5"), True)
    t.eval("document.getElementById('log').scrollTop = 0")
    t.click("#log-end")
    t.wait("(() => { const l = document.getElementById('log'); return l.scrollHeight - l.scrollTop - l.clientHeight < 5; })()")


# ---- the other views ----

@test
def shows_state(c):
    t = c.open()
    same(c.server.count("/weft/state"), 0)
    t.click("#tab-state")
    t.wait("document.querySelector('.line-0') && document.querySelector('.line-0').getAttribute('d').includes('L')")
    t.wait("/written \\d/.test(document.querySelector('.plot').innerText)")
    same([t.count(".plot"), t.count(".tier"), t.count("#slots tbody tr")], [6, 2, 1])
    assert "<b>alice</b>" in t.text("#slots") and "120 / 120" in t.text("#slots")
    assert "60 of 100 pages" in t.text("#tiers") and "q8/q4" in t.text("#tiers")
    assert "ended: 7 stop, 2 cancelled" in t.text("#state-line")
    t.wait("/p50 \\d/.test(document.querySelectorAll('.plot')[4].innerText)")
    if c.shots_at:
        time.sleep(5)
    c.shot("state")
    t.click("#tab-chat")
    time.sleep(0.3)
    n = c.server.count("/weft/state")
    time.sleep(1.6)
    same(c.server.count("/weft/state"), n)


@test
def shows_model(c):
    t = c.open()
    t.click("#tab-model")
    t.wait("document.querySelector('#graph img') && document.querySelector('#graph img').naturalWidth === 300")
    same([t.count(".source tbody tr"), t.text(".source tbody tr:nth-child(4) .line-text").strip()],
         [6, "x = tok_embd(tokens)"])
    t.wait("document.querySelector('.source tbody tr:nth-child(4) .share').innerText.includes('25%')")
    same(t.text(".source tbody tr:nth-child(5) .share"), "60%")
    same(t.eval("document.querySelector('.source tbody tr:nth-child(4) .share').title"),
         "decode: 25.0 %, 5.0000 ms a token, 8 GB/s, 50 % of the roof")
    # the style in the picture works, as the graphs of weft need it
    same(t.eval("""(() => {
        const canvas = document.createElement('canvas');
        canvas.width = 300;
        canvas.height = 400;
        const draw = canvas.getContext('2d');
        draw.drawImage(document.querySelector('#graph img'), 0, 0);
        return Array.from(draw.getImageData(150, 350, 1, 1).data);
    })()"""), [255, 0, 0, 255])
    assert "12 calls timed, one in 64" in t.text("#profile-line") and "7\u2009340\u2009000" in t.text("#facts")
    same(t.eval("typeof window.pwned"), "undefined")
    c.shot("model")
    t.eval("const f = document.getElementById('model-file'); f.value = '1'; f.dispatchEvent(new Event('change'))")
    same([t.count(".source tbody tr"), t.text(".source .share")], [2, ""])
    t.click("#graph-size")
    same(t.eval("document.querySelector('#graph img').clientWidth"), 300)


@test
def lives_without_a_profile(c):
    c.server.profile = False
    t = c.open()
    t.click("#tab-model")
    t.wait("document.getElementById('profile-line').innerText.includes('start the server with --profile')")
    time.sleep(2.5)
    same(c.server.count("/weft/profile"), 1)


@test
def idle_asks_nothing(c):
    t = c.open()
    c.ask("tell a story")
    n = len(c.server.asked)
    time.sleep(2)
    same([len(c.server.asked), [p for m, p, b, a in c.server.asked]], [n, ["/", "/v1/models", "/v1/chat/completions"]])
    same(t.text("#doing"), "")


# ---- keys, sizes, colours ----

@test
def keyboard(c):
    t = c.open()
    same(t.eval("document.activeElement.id"), "input")
    t.type("line one")
    t.key("Enter", shift=True)
    t.type("a story")
    t.key("Enter")
    c.done()
    same(c.server.bodies()[0]["messages"][0]["content"], "line one\na story")
    t.key("2", alt=True)
    t.wait("!document.getElementById('view-state').hidden")
    t.eval("document.getElementById('tab-state').focus()")
    t.key("ArrowRight")
    t.wait("!document.getElementById('view-model').hidden && document.activeElement.id === 'tab-model'")
    t.key("?")
    t.wait("document.getElementById('keys-dialog').open")
    c.shot("keys")
    t.key("Escape")
    t.wait("!document.getElementById('keys-dialog').open")
    t.key("/")
    t.wait("!document.getElementById('view-chat').hidden && document.activeElement.id === 'input'")
    t.key("?")
    same(t.eval("document.getElementById('input').value"), "?")
    t.key("n", alt=True)
    t.wait("document.querySelectorAll('#log .message').length === 0")
    # every control can be reached and has a name
    nameless = t.eval("""Array.from(document.querySelectorAll('button, input:not([hidden]), select, textarea')).filter(n =>
        !(n.innerText || n.textContent || '').trim() && !n.getAttribute('aria-label') && !(n.labels && n.labels.length)).map(n => n.outerHTML)""")
    same(nameless, [])


@test
def phone(c):
    t = c.open(width=375, height=700)
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    c.ask("tell a story")
    t.click("#settings-open")
    same(t.eval(wide), 0)
    t.key("Escape")
    c.shot("phone-chat")
    same(t.eval("getComputedStyle(document.getElementById('talks')).display"), "none")
    t.click("#menu")
    t.wait("getComputedStyle(document.getElementById('talks')).display === 'flex'")
    c.shot("phone-menu")
    t.click("#talk-new")
    t.wait("getComputedStyle(document.getElementById('talks')).display === 'none'")
    t.click("#tab-state")
    t.wait("document.querySelector('.tier')")
    same(t.eval(wide), 0)
    c.shot("phone-state")
    t.click("#tab-model")
    t.wait("document.querySelector('#graph img') && document.querySelector('#graph img').naturalWidth > 0")
    same(t.eval(wide), 0)
    c.shot("phone-model")
    t.click("#tab-chat")
    c.ask("hostile")
    same(t.eval(wide), 0)
    c.shot("phone-hostile")


@test
def dark(c):
    t = c.open()
    back = "getComputedStyle(document.body).backgroundColor"
    t.dark(True)
    same(t.eval(back), "rgb(22, 24, 28)")
    c.ask("tell a story")
    c.shot("dark-chat")
    t.click("#tab-state")
    t.wait("document.querySelector('.tier')")
    c.shot("dark-state")
    t.click("#theme")
    same([t.eval(back), t.eval("document.documentElement.dataset.theme")], ["rgb(255, 255, 255)", "light"])
    t.click("#theme")
    t.dark(False)
    same(t.eval(back), "rgb(22, 24, 28)")
    t.reload()
    t.wait("document.documentElement.dataset.theme === 'dark'")


@test
def without_scripts(c):
    t = c.tab = browser.Page(c.chromium, scripts=False)
    t.call("Page.navigate", {"url": c.server.url})
    height, html = t.node("noscript .plain", lambda node: [
        t.call("DOM.getBoxModel", {"nodeId": node})["model"]["height"],
        t.call("DOM.getOuterHTML", {"nodeId": node})["outerHTML"]])
    assert height > 50 and "needs JavaScript" in html, [height, html]
    c.shot("without-scripts")


@test
def units(c):
    """The unit tests, where there is no Node for them."""
    if shutil.which("node"):
        return
    here = os.path.dirname(os.path.abspath(__file__))
    page = os.path.join(here, "..", "..", "runtime", "page")
    with open(os.path.join(page, "CMakeLists.txt")) as f:
        scripts = re.findall(r"\b\w+\.js\b", f.read())
    paths = [os.path.join(page, s) for s in scripts if s != "main.js"] + sorted(glob.glob(os.path.join(here, "unit_*.js")))
    source = "\n".join(open(p).read() for p in paths)
    c.tab = browser.Page(c.chromium)
    failed = c.tab.eval("""(() => {
        "use strict";
        const failed = [];
        function same(a, b) {
            if (JSON.stringify(a) !== JSON.stringify(b)) throw new Error(JSON.stringify(a) + ", expected " + JSON.stringify(b));
        }
        function test(name, work) {
            try { work(); } catch (e) { failed.push(name + ": " + e.message); }
        }
        ((document) => {
""" + source + """
        })(undefined);
        return failed;
    })()""")
    same(failed, [])


def main(args):
    shots = None
    if "--shots" in args:
        at = args.index("--shots")
        shots = args[at + 1]
        del args[at:at + 2]
        os.makedirs(shots, exist_ok=True)
    folder, names = args[0], args[1:]
    program = browser.find()
    if not program:
        print("skipped: no chromium here (Debian: apt install chromium; WEFT_CHROMIUM names one)")
        return 77
    with open(os.path.join(folder, "index.html"), "rb") as f:
        html = f.read()
    with open(os.path.join(folder, "headers.txt")) as f:
        headers = [line.rstrip("\n").split(": ", 1) for line in f]
    chromium = browser.Browser(program)
    failed = 0
    try:
        for one in TESTS:
            if names and one.__name__ not in names:
                continue
            case = Case(chromium, html, headers, shots)
            begun = time.time()
            try:
                one(case)
                case.end()
                print("ok     %-28s %.1f s" % (one.__name__, time.time() - begun), flush=True)
            except (AssertionError, RuntimeError) as e:
                failed += 1
                place = traceback.extract_tb(e.__traceback__)
                line = [f.lineno for f in place if f.filename == __file__][-1]
                print("FAILED %s, line %d: %s" % (one.__name__, line, e), flush=True)
                if case.tab:
                    print("       faults: %s" % json.dumps(case.tab.faults), flush=True)
            case.server.kill()
    finally:
        chromium.close()
    print("%d failed" % failed)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
