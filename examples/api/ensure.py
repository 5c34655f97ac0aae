#!/usr/bin/env python3
"""Drives ccm from Python: one process, one request per line.

    python3 ensure.py /tmp/greeting

The program ccm is found in PATH, or where the variable CCM says.
"""

import json
import os
import subprocess
import sys

REQUEST = "io.choria.ccm.v1.resource.ensure.request"


class Ccm:
    """A ccm that waits for requests."""

    def __init__(self, *flags):
        command = [os.environ.get("CCM", "ccm"), "ensure", "api", "pipe", "--stream", *flags]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ensure(self, kind, **properties):
        """Manages one resource and returns its event."""
        request = {"protocol": REQUEST, "type": kind, "properties": properties}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        response = json.loads(self.process.stdout.readline())
        if "error" in response:
            raise ValueError(response["error"])
        return response["state"]

    def close(self):
        """Ends ccm; 0 if nothing failed."""
        self.process.stdin.close()
        return self.process.wait()


def main():
    path = sys.argv[1]
    ccm = Ccm()
    owner = {"owner": str(os.getuid()), "group": str(os.getgid())}
    greeting = ccm.ensure("file", name=path, content="Hello from Python\n", mode="0644", **owner)
    print("greeting:", "changed" if greeting["changed"] else "stable")
    # Requests share a session: this command runs only when the file changed.
    told = ccm.ensure(
        "exec", name=f"cat {path}", refresh_only=True, subscribe=[f"file#{path}"]
    )
    print("reader:", "ran" if told["refreshed"] else "not needed")
    try:
        ccm.ensure("file", name="relative", ensure="absent")
    except ValueError as error:
        print("refused:", error)
    return ccm.close()


if __name__ == "__main__":
    main()
