"""Drives Chromium by its own debugging protocol over two pipes: no driver, no port, no package but the browser."""

import base64
import json
import os
import pathlib
import queue
import shutil
import subprocess
import tempfile
import threading
import time


def find():
    """The path of a Chromium; None: there is none."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Browser:
    """One browser without windows; pages are opened one after the other."""

    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="inquest-browser-")
        theirs_in, self.to = os.pipe()
        self.out, theirs_out = os.pipe()

        # The pipes must not stand where they are put before they were moved.
        moved_in, moved_out = (os.dup(fd) for fd in (theirs_in, theirs_out))
        while min(moved_in, moved_out) <= 4:
            moved_in, moved_out = os.dup(moved_in), os.dup(moved_out)
        os.close(theirs_in), os.close(theirs_out)

        def set_up():
            os.dup2(moved_in, 3)
            os.dup2(moved_out, 4)

        self.process = subprocess.Popen(
            [find(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
             "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--remote-debugging-pipe",
             f"--user-data-dir={self.profile}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False, preexec_fn=set_up, env={**os.environ, "HOME": self.profile},
        )
        os.close(moved_in), os.close(moved_out)
        self.messages = queue.Queue()
        self.replies, self.number = {}, 0
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        rest = b""
        while True:
            piece = os.read(self.out, 1 << 20)
            if not piece:
                return
            *whole, rest = (rest + piece).split(b"\0")
            for one in whole:
                self.messages.put(json.loads(one))

    def send(self, method, session=None, **parameters):
        """The result of a command; events that come in between are handed to their page."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]
        until = time.monotonic() + 60
        while True:
            reply = self.messages.get(timeout=max(0.1, until - time.monotonic()))
            if reply.get("id") == self.number:
                if "error" in reply:
                    raise RuntimeError(f"{method}: {reply['error']}")
                return reply["result"]
            self.take(reply)

    def take(self, event):
        self.page.events.append(event) if getattr(self, "page", None) else None

    def open(self, path, **options):
        self.page = Page(self)
        self.page.go(path, **options)
        return self.page

    def close(self):
        try:
            self.send("Browser.close")
        except Exception:
            self.process.kill()
        self.process.wait(timeout=20)
        shutil.rmtree(self.profile, ignore_errors=True)


class Page:
    def __init__(self, browser):
        self.browser, self.events = browser, []
        self.target = browser.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.send("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log", "Audits"):
            self.send(f"{domain}.enable")

    def send(self, method, **parameters):
        return self.browser.send(method, session=self.session, **parameters)

    def go(self, path, width=1280, height=900, dark=False, script=True):
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}, {"name": "prefers-reduced-motion", "value": "reduce"}])
        self.send("Emulation.setScriptExecutionDisabled", value=not script)
        self.events.clear()
        start = time.monotonic()
        self.send("Page.navigate", url=pathlib.Path(path).resolve().as_uri())
        self.wait_for(lambda: any(e["method"] == "Page.loadEventFired" for e in self.events))
        self.loaded_in = time.monotonic() - start

    def wait_for(self, holds, timeout=30):
        until = time.monotonic() + timeout
        while not holds():
            if time.monotonic() > until:
                raise TimeoutError("the page did not come to what was waited for")
            try:
                self.browser.take(self.browser.messages.get(timeout=0.05))
            except queue.Empty:
                pass

    def evaluate(self, expression):
        result = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(json.dumps(result["exceptionDetails"])[:2000])
        return result["result"].get("value")

    def key(self, key, text=None):
        codes = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        more = {"text": "\r"} if key == "Enter" else {"text": text} if text else {}
        common = {"key": key, "code": key, "windowsVirtualKeyCode": codes.get(key, ord(key[0].upper()))}
        self.send("Input.dispatchKeyEvent", type="keyDown", **common, **more)
        self.send("Input.dispatchKeyEvent", type="keyUp", **common)

    def click(self, selector):
        at = self.evaluate(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'center'}}); const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; }})()")
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=at[0], y=at[1], button="left", clickCount=1)

    def problems(self):
        """What the console, the policy or the network said: nothing, on a page that is well."""
        self.evaluate("new Promise(done => setTimeout(done, 30))")
        found = []
        for event in self.events:
            method, parameters = event["method"], event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(parameters["exceptionDetails"])
            elif method == "Runtime.consoleAPICalled":
                found.append(parameters["args"])
            elif method == "Log.entryAdded":
                found.append(parameters["entry"])
            elif method == "Audits.issueAdded" and "contentSecurityPolicy" in str(parameters):
                found.append(parameters["issue"])
        return found

    def requests(self):
        return [e["params"]["request"]["url"] for e in self.events if e["method"] == "Network.requestWillBeSent"]

    def screenshot(self, path, whole=False):
        more = {}
        if whole:
            size = self.send("Page.getLayoutMetrics")["cssContentSize"]
            more = {"captureBeyondViewport": True, "clip": {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 6000), "scale": 1}}
        pathlib.Path(path).write_bytes(base64.b64decode(self.send("Page.captureScreenshot", format="png", **more)["data"]))

    def pdf(self, path):
        pathlib.Path(path).write_bytes(base64.b64decode(self.send("Page.printToPDF", printBackground=True, landscape=True)["data"]))

    def close(self):
        self.browser.send("Target.closeTarget", targetId=self.target)
