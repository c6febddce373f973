"""A headless Chromium, spoken to over its DevTools protocol through pipes: nothing but Python's standard library, and no port is opened."""
import base64
import json
import os
import shutil
import subprocess
import tempfile
import time

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


def program():
    """The browser's path, or None."""
    return next(filter(None, (shutil.which(name) for name in PROGRAMS)), None)


class Chromium:
    """One browser with one page. Every request that the page makes, and every message and error of its console, is kept."""

    def __init__(self, scripts=True, dark=False, width=1100, height=900):
        self.requests, self.messages, self.events = [], [], []
        self.home = tempfile.mkdtemp(prefix="napkin-browser-")
        to_browser, self.out = os.pipe()
        self.into, from_browser = os.pipe()

        def move():  # the browser reads from descriptor 3 and writes to 4
            a, b = os.dup(to_browser), os.dup(from_browser)
            os.dup2(a, 3), os.dup2(b, 4)

        self.process = subprocess.Popen(
            [program(), "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-background-networking",
             "--no-first-run", "--remote-debugging-pipe", f"--user-data-dir={self.home}", f"--window-size={width},{height}", "about:blank"],
            preexec_fn=move, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser), os.close(from_browser)
        self.last, self.read_so_far, self.session = 0, b"", None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        if not scripts:
            self.call("Emulation.setScriptExecutionDisabled", value=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.out), os.close(self.into)
        shutil.rmtree(self.home, ignore_errors=True)

    def call(self, method, **params):
        self.last += 1
        message = {"id": self.last, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def receive(self):
        while b"\0" not in self.read_so_far:
            more = os.read(self.into, 1 << 20)
            if not more:
                raise RuntimeError("the browser has ended")
            self.read_so_far += more
        text, self.read_so_far = self.read_so_far.split(b"\0", 1)
        message = json.loads(text)
        kind, params = message.get("method"), message.get("params", {})
        if kind == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif kind == "Runtime.consoleAPICalled":
            self.messages.append(str([a.get("value") for a in params["args"]]))
        elif kind == "Runtime.exceptionThrown":
            self.messages.append(str(params["exceptionDetails"].get("exception", {}).get("description", params)))
        elif kind == "Log.entryAdded":
            self.messages.append(params["entry"]["text"])
        if kind:
            self.events.append(kind)
        return message

    def open(self, path):
        """Opens a file and waits until it is loaded; the seconds that this took."""
        self.events.clear()
        began = time.monotonic()
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        while "Page.loadEventFired" not in self.events:
            self.receive()
        return time.monotonic() - began

    def value(self, expression):
        """Of a JavaScript expression; of a promise, what it comes to."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(expression + ": " + result["exceptionDetails"].get("exception", {}).get("description", "failed"))
        return result["result"].get("value")

    def until(self, expression, seconds=60):
        """Waits until the expression is true; the seconds that this took."""
        began = time.monotonic()
        while not self.value(expression):
            if time.monotonic() - began > seconds:
                raise RuntimeError(f"after {seconds} s not: {expression}")
            time.sleep(0.01)
        return time.monotonic() - began

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode={"Tab": 9, "ArrowRight": 39, "ArrowLeft": 37}.get(key, 0))

    def screenshot(self, path, selector=None):
        """Of the whole page, or of one element."""
        params = {"captureBeyondViewport": True}
        if selector:
            x, y, width, height = self.value(
                f"(() => {{ const b = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
                " return [b.x + scrollX, b.y + scrollY, b.width, b.height]; })()")
            params["clip"] = {"x": x, "y": y, "width": width, "height": height, "scale": 1}
        data = self.call("Page.captureScreenshot", **params)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
