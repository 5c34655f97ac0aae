"""As much of NATS as the experiment needs: a cluster of three servers, and a
client that creates a bucket of objects and puts objects into it."""

import base64
import hashlib
import io
import json
import os
import signal
import socket
import subprocess
import tarfile
import time
import urllib.request


def wait_for(what, check, limit=120.0):
    """The first result of check that is not None or False."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        found = check()
        if found not in (None, False):
            return found
        time.sleep(0.1)
    raise SystemExit(f"fleet: waited {limit:.0f} s for {what}")


class Cluster:
    """Three servers on the loopback interface, below a directory of their own."""

    def __init__(self, program, directory):
        self.program, self.directory, self.nodes = program, directory, {}
        held = [socket.create_server(("127.0.0.1", 0)) for _ in range(9)]
        ports = [port.getsockname()[1] for port in held]
        for port in held:
            port.close()
        self.clients, self.routes, self.monitors = ports[0:3], ports[3:6], ports[6:9]
        for number in range(3):
            self.start(number)
        wait_for("the cluster", self.has_leader)

    def start(self, number):
        place = os.path.join(self.directory, f"n{number}")
        os.makedirs(place, exist_ok=True)
        routes = ", ".join(f'"nats://127.0.0.1:{port}"' for port in self.routes)
        configuration = (
            f'server_name: "n{number}"\nlisten: "127.0.0.1:{self.clients[number]}"\n'
            f'http: "127.0.0.1:{self.monitors[number]}"\nlogfile: "{place}/log"\n'
            f'jetstream: {{ store_dir: "{place}/js" }}\n'
            f'cluster: {{ name: "fleet", listen: "127.0.0.1:{self.routes[number]}", routes: [{routes}] }}\n'
        )
        with open(os.path.join(place, "server.conf"), "w") as file:
            file.write(configuration)
        command = [self.program, "-c", os.path.join(place, "server.conf")]
        self.nodes[number] = subprocess.Popen(command, stdin=subprocess.DEVNULL)

    def kill(self, number):
        node = self.nodes.pop(number)
        node.kill()
        node.wait()

    def end(self):
        for node in self.nodes.values():
            node.send_signal(signal.SIGTERM)
        for node in self.nodes.values():
            try:
                node.wait(20)
            except subprocess.TimeoutExpired:
                node.kill()

    def url(self):
        return ",".join(f"nats://127.0.0.1:{port}" for port in self.clients)

    def ask(self, number, path):
        """What the monitoring of a server says; None if it does not answer."""
        try:
            url = f"http://127.0.0.1:{self.monitors[number]}/{path}"
            with urllib.request.urlopen(url, timeout=5) as answer:
                return json.load(answer)
        except OSError:
            return None

    def has_leader(self):
        def is_ready(number):
            leads = (self.ask(number, "jsz") or {}).get("meta_cluster", {}).get("leader")
            healthy = (self.ask(number, "healthz") or {}).get("status") == "ok"
            return leads and healthy

        return all(is_ready(number) for number in self.nodes)

    def totals(self):
        """The sum of what the servers count, and the largest memory."""
        answers = [answer for number in self.nodes if (answer := self.ask(number, "varz"))]
        streams = [answer for number in self.nodes if (answer := self.ask(number, "jsz"))]
        names = ("connections", "subscriptions", "in_msgs", "out_msgs", "in_bytes", "out_bytes")
        totals = {name: sum(answer[name] for answer in answers) for name in names}
        totals["consumers"] = max((answer.get("consumers", 0) for answer in streams), default=0)
        totals["memory"] = max((answer["mem"] for answer in answers), default=0)
        totals["per_node"] = {answer["server_name"]: answer["connections"] for answer in answers}
        return totals


class Client:
    """One connection that asks and waits for the answer."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.input = self.socket.makefile("rb")
        self.input.readline()
        options = {"verbose": False, "pedantic": False, "headers": True, "name": "fleet"}
        self.inbox = "_INBOX." + base64.b32encode(os.urandom(10)).decode()
        self.send(f"CONNECT {json.dumps(options)}\r\nSUB {self.inbox} 1\r\n".encode())

    def send(self, data):
        self.socket.sendall(data)

    def request(self, subject, payload, headers=None):
        if headers:
            head = "NATS/1.0\r\n" + "".join(f"{k}: {v}\r\n" for k, v in headers.items()) + "\r\n"
            head = head.encode()
            sizes = f"{len(head)} {len(head) + len(payload)}"
            line = f"HPUB {subject} {self.inbox} {sizes}\r\n".encode()
            self.send(line + head + payload + b"\r\n")
        else:
            line = f"PUB {subject} {self.inbox} {len(payload)}\r\n".encode()
            self.send(line + payload + b"\r\n")
        while True:
            words = self.input.readline().split()
            if not words:
                raise OSError("the server closed the connection")
            if words[0] == b"PING":
                self.send(b"PONG\r\n")
            elif words[0] in (b"MSG", b"HMSG"):
                body = self.input.read(int(words[-1]) + 2)[:-2]
                if words[0] == b"HMSG":
                    body = body[int(words[-2]):]
                answer = json.loads(body or b"{}")
                if answer.get("error"):
                    raise OSError(f"{subject}: {answer['error']}")
                return answer
            elif words[0].startswith(b"-ERR"):
                raise OSError(b" ".join(words).decode())

    def create_bucket(self, bucket):
        config = {
            "name": f"OBJ_{bucket}", "subjects": [f"$O.{bucket}.C.>", f"$O.{bucket}.M.>"],
            "retention": "limits", "storage": "file", "discard": "new", "num_replicas": 3,
            "allow_rollup_hdrs": True, "allow_direct": True, "max_age": 0,
        }
        self.request(f"$JS.API.STREAM.CREATE.OBJ_{bucket}", json.dumps(config).encode())

    def put(self, bucket, name, content):
        """Puts an object of one chunk, the way clients of NATS do."""
        identity = base64.b32encode(os.urandom(10)).decode()
        self.request(f"$O.{bucket}.C.{identity}", content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode()
        metadata = {
            "name": name, "bucket": bucket, "nuid": identity, "size": len(content), "chunks": 1,
            "digest": f"SHA-256={digest}", "mtime": "0001-01-01T00:00:00Z",
            "options": {"max_chunk_size": 131072},
        }
        subject = f"$O.{bucket}.M.{base64.urlsafe_b64encode(name.encode()).decode()}"
        self.request(subject, json.dumps(metadata).encode(), {"Nats-Rollup": "sub"})


def archive(files):
    """A .tar.gz of files, by name."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            data = text.encode()
            entry.size, entry.mode = len(data), 0o644
            tar.addfile(entry, io.BytesIO(data))
    return made.getvalue()
