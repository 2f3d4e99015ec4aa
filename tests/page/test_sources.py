"""test_sources.py - what must hold of the page's sources and of the joined page: test_sources.py SOURCES FOLDER, where
FOLDER has the index.html and headers.txt of the build."""

import base64
import hashlib
import os
import re
import sys

# Calls that make elements or code of text, and ways to keep more than the page says.
FORBIDDEN = ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "createContextualFragment", "DOMParser",
             "srcdoc", "setHTML", "eval(",
             "new Function", "import(", "javascript:", "document.cookie", "indexedDB", "new Worker", "serviceWorker",
             "postMessage", "window.open", "XMLHttpRequest",
             "WebSocket", "sendBeacon", "EventSource", "trustedTypes"]
# Addresses in the page, none of which is loaded: a name space, and what the page without scripts shows.
ADDRESSES = {"http://www.w3.org/2000/svg", "http://localhost:PORT/v1/chat/completions"}


def main(sources, folder):
    faults = []
    scripts = sorted(f for f in os.listdir(sources) if f.endswith(".js"))
    listed = open(os.path.join(sources, "CMakeLists.txt")).read()
    readme = open(os.path.join(sources, "README.md")).read()
    for name in scripts:
        text = open(os.path.join(sources, name)).read()
        code = re.sub(r"^\s*//.*$", "", text, flags=re.M)
        faults += ["%s has %s" % (name, word) for word in FORBIDDEN if word in code]
        if not text.startswith("// %s - " % name):
            faults.append(name + " does not begin with what it is")
        if name not in listed:
            faults.append(name + " is not in CMakeLists.txt")
        if "`%s`" % name not in readme:
            faults.append(name + " is not in the README")
        if text.count("\n") > 300:
            faults.append("%s has %d lines" % (name, text.count("\n")))
    html = open(os.path.join(folder, "index.html"), newline="").read()
    headers = dict(line.rstrip("\n").split(": ", 1) for line in open(os.path.join(folder, "headers.txt")))
    policy = headers["Content-Security-Policy"]
    for tag in ("script", "style"):
        parts = re.findall("<%s[^>]*>(.*?)</%s>" % (tag, tag), html, re.S)
        if len(parts) != 1:
            faults.append("the page has %d of <%s>, expected 1" % (len(parts), tag))
            continue
        digest = base64.b64encode(hashlib.sha256(parts[0].encode()).digest()).decode()
        if "%s-src 'sha256-%s';" % (tag, digest) not in policy:
            faults.append("the policy does not have the hash of the %s" % tag)
    faults += ["the policy has " + word for word in ("unsafe", "*", "http:", "https:") if word in policy]
    body = html.split("<script>")[0]
    if re.search(r"\s(on\w+|style)\s*=", re.sub(r"<style>.*?</style>", "", body, flags=re.S)):
        faults.append("the page has a listener or a style as an attribute, which its policy forbids")
    faults += ["the page names " + u for u in set(re.findall(r"https?://[\w.:]+[\w/.]*",
                                                             body)) - ADDRESSES if not u.startswith("http://www.w3.org")]
    ids = re.findall(r'\sid="([^"]+)"', body)
    faults += ["two elements are called " + i for i in set(ids) if ids.count(i) > 1]
    used = set(re.findall(r'byId\("([^"]+)"\)', html))
    faults += ["no element is called " + i for i in used - set(ids) if not i.startswith("set-") and not i.endswith("-")]
    for f in faults:
        print(f)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
