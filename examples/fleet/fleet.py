#!/usr/bin/env python3
"""A fleet on one machine: a NATS cluster of three servers and many real agents.

Publishes a manifest, changes it, changes it again while a server of the cluster
is killed, and prints how soon and how evenly the agents applied it, what the
servers saw, and what the agents cost. Exits with 1 if an agent misses a
manifest or applies one later than --splay and --grace after its publication.

    examples/fleet/fleet.py --agents 500 --splay 60

Needs Python 3.8, a nats-server of 2.11 or later (`cargo xtask nats` builds one)
and a ccm. Everything is below one temporary directory and on the loopback
interface. Interrupt it whenever you like: it ends what it started.
"""

import argparse
import json
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from nats import Client, Cluster, archive, wait_for

PROJECT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
BUCKET, OBJECT = "FLEET", "site.tar.gz"

# Each agent writes the version into a file of its own, so that the file's time
# is that of the apply, and a line for each run into another one.
MANIFEST = """\
ccm:
  resources:
    - file:
        - "{{{{ Environ.FLEET_HOME }}}}/applied":
            content: "{version}"
            owner: "{{{{ Environ.FLEET_OWNER }}}}"
            group: "{{{{ Environ.FLEET_GROUP }}}}"
            mode: "0644"
    - exec:
        - count:
            provider: shell
            command: "echo run >> {{{{ Environ.FLEET_HOME }}}}/runs"
"""


class Agent:
    """One process of `ccm agent` with a home of its own."""

    def __init__(self, options, directory, number, context):
        self.home = os.path.join(directory, f"a{number:05}")
        os.makedirs(self.home, mode=0o755)
        configuration = {
            "manifests": [f"obj://{BUCKET}/{OBJECT}"],
            "interval": f"{options.interval}s",
            "splay": f"{options.splay}s",
            "cache_dir": os.path.join(self.home, "cache"),
            "nats_context": context,
            "resource_metrics": False,
        }
        path = os.path.join(self.home, "config.yaml")
        with open(path, "w") as file:
            json.dump(configuration, file)
        environment = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": self.home,
            "CCM_STATE_DIR": os.path.join(self.home, "state"),
            "FLEET_HOME": self.home,
            "FLEET_OWNER": str(os.getuid()),
            "FLEET_GROUP": str(os.getgid()),
        }
        self.log = open(os.path.join(self.home, "log"), "wb")
        self.started = time.time()
        self.process = subprocess.Popen(
            [options.ccm, "agent", "--config", path], env=environment, cwd=self.home,
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
        )

    def applied(self, version):
        """When the version was applied, or None."""
        path = os.path.join(self.home, "applied")
        try:
            with open(path) as file:
                if file.read() == version:
                    return os.fstat(file.fileno()).st_mtime
        except FileNotFoundError:
            pass
        return None

    def runs(self):
        try:
            return os.path.getsize(os.path.join(self.home, "runs")) // len("run\n")
        except FileNotFoundError:
            return 0

    def memory(self):
        """Resident bytes, and those that belong to this process alone."""
        found = {}
        try:
            with open(f"/proc/{self.process.pid}/smaps_rollup") as file:
                for line in file:
                    words = line.split()
                    if words[0] in ("Rss:", "Pss:", "Private_Clean:", "Private_Dirty:"):
                        found[words[0]] = int(words[1]) * 1024
        except (OSError, ProcessLookupError):
            return None
        private = found.get("Private_Clean:", 0) + found.get("Private_Dirty:", 0)
        return found.get("Rss:", 0), found.get("Pss:", 0), private

    def threads_and_files(self):
        try:
            process = f"/proc/{self.process.pid}"
            return len(os.listdir(f"{process}/task")), len(os.listdir(f"{process}/fd"))
        except OSError:
            return None


def percentile(sorted_values, part):
    return sorted_values[min(len(sorted_values) - 1, int(len(sorted_values) * part / 100))]


def mebibytes(count):
    return f"{count / 1048576:.1f} MiB"


def show_delays(name, delays, width):
    delays = sorted(delays)
    shown = ", ".join(f"{part} % {percentile(delays, part):.1f}" for part in (1, 50, 90, 99))
    print(f"  {name}: {shown}, last {delays[-1]:.1f} s")
    slots = [0] * 10
    for delay in delays:
        slots[max(0, min(9, int(delay / width * 10)))] += 1
    print(f"  applies per tenth of the splay ({width / 10:.1f} s): {' '.join(map(str, slots))}")


def round_of(agents, version, published, options):
    """Waits until every agent has applied a version; how long each took since
    the publication, or without one since its start."""
    times = {}

    def all_applied():
        for number, agent in enumerate(agents):
            if number not in times:
                at = agent.applied(version)
                if at is not None:
                    times[number] = at - (published or agent.started)
        return len(times) == len(agents)

    end = time.monotonic() + options.splay + options.patience
    while time.monotonic() < end and not all_applied():
        time.sleep(0.5)
    missed = [agent.home for number, agent in enumerate(agents) if number not in times]
    late = [delay for delay in times.values() if delay > options.splay + options.grace]
    return list(times.values()), missed, late


def publish(cluster, version):
    """Puts the manifest with this version; when it was there."""

    def attempt():
        # A server that was just killed may have led the stream.
        for number in cluster.nodes:
            try:
                client = Client(cluster.clients[number])
                client.put(BUCKET, OBJECT, archive({"manifest.yaml": MANIFEST.format(version=version)}))
                return time.time()
            except OSError:
                continue
        return None

    return wait_for(f"the publication of {version}", attempt)


def difference(after, before, name):
    return after[name] - before[name]


def experiment(options, directory):
    cluster, agents, failures = None, [], []
    # Everything of this experiment is one process group.
    if os.getpid() != os.getpgrp():
        os.setpgrp()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = options.agents * 4 + 1000
    if hard != resource.RLIM_INFINITY and hard < wanted:
        print(f"fleet: only {hard} open files are allowed, {wanted} may be needed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard) if hard > 0 else wanted, hard))
    try:
        cluster = Cluster(options.nats_server, directory)
        # A publication needs a leader of the stream, which is elected later.
        wait_for("the bucket", lambda: create_bucket(cluster))
        context = os.path.join(directory, "context.json")
        with open(context, "w") as file:
            json.dump({"url": cluster.url()}, file)
        os.chmod(context, 0o600)
        publish(cluster, "v1")
        empty = cluster.totals()

        print(f"{options.agents} agents, splay {options.splay} s, interval {options.interval} s")
        begin = time.monotonic()
        for number in range(options.agents):
            agents.append(Agent(options, directory, number, context))
            if options.start_rate:
                time.sleep(1 / options.start_rate)
        print(f"\nstart: {time.monotonic() - begin:.1f} s for all processes")
        delays, missed, late = round_of(agents, "v1", None, options)
        report("first manifest, after the start of each agent", delays, missed, late, options, failures)

        quiet = rest(cluster, agents, options, empty)
        for version, victim in (("v2", False), ("v3", True)):
            before, begin = cluster.totals(), time.monotonic()
            published = publish(cluster, version)
            if victim:
                time.sleep(options.kill_after)
                crowd = cluster.totals()["per_node"]
                busiest = max(crowd, key=crowd.get)
                print(f"\nkilling {busiest}, which has {crowd[busiest]} connections")
                cluster.kill(int(busiest[1:]))
            delays, missed, late = round_of(agents, version, published, options)
            after = cluster.totals()
            title = "change while a server is killed" if victim else "change"
            report(title, delays, missed, late, options, failures)
            if not victim:
                names = ("in_msgs", "out_msgs", "in_bytes", "out_bytes")
                # Without what the servers exchange among themselves at rest.
                seconds = time.monotonic() - begin
                counts = [difference(after, before, name) - quiet[name] * seconds for name in names]
                counts = [count / options.agents for count in counts]
                print(f"  for each agent: {counts[0]:.1f} messages to the servers, {counts[1]:.1f} from "
                      f"them, {counts[2]:.0f} bytes to, {counts[3]:.0f} from")
            else:
                print(f"  connections now: {after['per_node']}")
        if options.outage:
            outage(cluster, agents, options, failures)
        if options.soak:
            soak(cluster, agents, options, failures)
        ended = [agent for agent in agents if agent.process.poll() is not None]
        if ended:
            failures.append(f"{len(ended)} agents ended by themselves, such as {ended[0].home}")
    finally:
        for agent in agents:
            if agent.process.poll() is None:
                agent.process.send_signal(signal.SIGTERM)
        for agent in agents:
            try:
                agent.process.wait(30)
            except subprocess.TimeoutExpired:
                failures.append(f"{agent.home} did not end")
                agent.process.kill()
            agent.log.close()
        if cluster:
            cluster.end()
    return failures


def outage(cluster, agents, options, failures):
    """Kills all servers for some time: runs go on, and a change after it counts."""
    for number in list(cluster.nodes):
        cluster.kill(number)
    before = [agent.runs() for agent in agents]
    time.sleep(options.outage)
    made = [agent.runs() - count for agent, count in zip(agents, before)]
    print(f"\nno server for {options.outage} s: {min(made)} to {max(made)} runs per agent, "
          f"{sum(made)} together")
    # One less, as a run may have been at work when the time began or ended.
    if min(made) < options.outage // options.interval - 1:
        failures.append("runs did not go on without servers")
    costs(agents)
    for number in range(3):
        cluster.start(number)
    wait_for("the cluster", cluster.has_leader)
    published = publish(cluster, "v4")
    # Agents come back when their backoff is over, 30 s at most, and then look.
    delays, missed, _ = round_of(agents, "v4", published, options)
    report("change after the outage", delays, missed, [], options, failures)


def soak(cluster, agents, options, failures):
    """Goes on for a long time, with a change now and then."""
    begin, changes, published = time.monotonic(), 0, None
    next_change, next_look = options.change_every, 60
    while (passed := time.monotonic() - begin) < options.soak:
        if options.change_every and passed >= next_change:
            changes += 1
            next_change += options.change_every
            published = publish(cluster, f"s{changes}")
        if passed >= next_look:
            print(f"\nafter {next_look} s more, {changes} changes")
            print(f"  runs so far: {sum(agent.runs() for agent in agents)}")
            costs(agents)
            next_look += 60
        time.sleep(0.1)
    if changes:
        delays, missed, late = round_of(agents, f"s{changes}", published, options)
        report(f"the last of {changes} changes", delays, missed, late, options, failures)


def create_bucket(cluster):
    try:
        Client(cluster.clients[0]).create_bucket(BUCKET)
        return True
    except OSError:
        return False


def report(title, delays, missed, late, options, failures):
    print(f"\n{title}: {len(delays)} of {options.agents} agents applied it")
    if delays:
        show_delays("seconds", delays, options.splay)
    if missed:
        failures.append(f"{title}: {len(missed)} agents missed it, such as {missed[0]}")
    if late:
        failures.append(f"{title}: {len(late)} agents were late, the last after {max(late):.1f} s")


def rest(cluster, agents, options, empty):
    """What servers and agents cost while nothing happens; per second."""
    before, used = cluster.totals(), cpu(agents)
    time.sleep(options.rest)
    after, used = cluster.totals(), cpu(agents) - used
    quiet = {name: difference(after, before, name) / options.rest
             for name in ("in_msgs", "out_msgs", "in_bytes", "out_bytes")}
    print(f"\nat rest, {options.rest} s: {quiet['in_msgs']:.1f} messages per second, "
          f"those between the servers included")
    subscriptions = difference(after, empty, "subscriptions") / options.agents
    print(f"  {after['connections']} connections {after['per_node']}, {after['consumers']} consumers, "
          f"{subscriptions:.1f} subscriptions per agent, summed over the servers")
    print(f"  memory of the largest server: {mebibytes(after['memory'])}, "
          f"{mebibytes(empty['memory'])} without agents")
    print(f"  processor time of all agents: {used:.2f} s in {options.rest} s")
    costs(agents)
    return quiet


def cpu(agents):
    total = 0
    for agent in agents:
        try:
            with open(f"/proc/{agent.process.pid}/stat") as file:
                fields = file.read().rsplit(")", 1)[1].split()
            total += int(fields[11]) + int(fields[12])
        except OSError:
            pass
    return total / os.sysconf("SC_CLK_TCK")


def costs(agents):
    sizes = [size for agent in agents if (size := agent.memory())]
    counts = [count for agent in agents if (count := agent.threads_and_files())]
    if not sizes or not counts:
        return
    resident, proportional, private = (sorted(column) for column in zip(*sizes))
    print(f"  an agent: resident {mebibytes(statistics.median(resident))} "
          f"(largest {mebibytes(resident[-1])}), private {mebibytes(statistics.median(private))}; "
          f"all together {mebibytes(sum(proportional))}")
    threads, files = (sorted(column) for column in zip(*counts))
    print(f"  threads {statistics.median(threads):.0f} (most {threads[-1]}), "
          f"descriptors {statistics.median(files):.0f} (most {files[-1]})")


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=50)
    parser.add_argument("--splay", type=int, default=30, help="in seconds")
    parser.add_argument("--interval", type=int, default=3600, help="in seconds")
    parser.add_argument("--grace", type=float, default=10, help="seconds after the splay")
    parser.add_argument("--patience", type=float, default=400,
                        help="seconds after the splay until an agent has missed a manifest")
    parser.add_argument("--rest", type=int, default=20, help="seconds at rest to measure")
    parser.add_argument("--kill-after", type=float, default=2,
                        help="seconds between the publication and the end of a server")
    parser.add_argument("--outage", type=int, default=0,
                        help="seconds without any server, several times the interval")
    parser.add_argument("--soak", type=int, default=0, help="seconds to go on at the end")
    parser.add_argument("--change-every", type=float, default=0,
                        help="seconds between changes while it goes on")
    parser.add_argument("--start-rate", type=float, default=20, help="agents per second, 0 for all at once")
    parser.add_argument("--ccm", default=shutil.which("ccm") or f"{PROJECT}/target/release/ccm")
    parser.add_argument("--nats-server", default=f"{PROJECT}/target/tools/nats-server")
    parser.add_argument("--keep", action="store_true", help="keep the directory with all logs")
    options = parser.parse_args()
    for program in (options.ccm, options.nats_server):
        if not os.access(program, os.X_OK):
            parser.error(f"{program} is not there")
    if options.splay > options.interval:
        parser.error("--splay must not be larger than --interval")
    return options


def main():
    options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    directory = tempfile.mkdtemp(prefix="ccm-fleet-")
    try:
        failures = experiment(options, directory)
    finally:
        if options.keep:
            print(f"\nkept {directory}")
        else:
            shutil.rmtree(directory, ignore_errors=True)
    for failure in failures:
        print(f"FAILED: {failure}")
    if not failures:
        print("\nnone missed a manifest, and none was late")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
