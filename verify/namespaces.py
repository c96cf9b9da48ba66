#!/usr/bin/env python3
"""Counts packets of channels across random labs in network namespaces, until so many have been sent.

Each lab has two or three segments, links of one discipline among them, and up to eight nodes. Sources are as fast
as their traffic allows, at random within it, or beyond it; ordinary traffic fills a segment. Each late or lost
unit of a conforming source is named with the stalls of the host that explain it. The rows of a run are appended
to verify/namespaces.csv, its late and lost units to verify/namespaces-late.csv.

    verify/namespaces.py --packets 10000000 --seed 1

needs a release build of rota and of the C library (it makes them), cc, and the right to make namespaces."""

import argparse, csv, json, os, random, signal, subprocess, sys, tempfile, time
from multiprocessing import Event, Process, Queue
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DISCIPLINES = [("delay-edd", r) for r in ("none", "rate-jitter")] + [("jitter-edd", r) for r in ("rate-jitter", "delay-jitter")]
DISCIPLINES += [("rcsp", r) for r in ("rate-jitter", "delay-jitter")]
NODES_MAX, CHANNELS, MS = 8, 6, 1_000_000
RATES = [10, 100] + 18 * [1_000]  # Mbit/s: most packets cross fast labs
OCTETS_MAX = 65_536
LOAD = (0.01, 0.08)  # of a channel, as a part of the slowest segment
CYCLE = 33_333_333  # a stall of another station of a ring counts within a cycle
UNFIT = 0.05  # a machine that excuses more than this part of the units judges nothing


def witness(cpu, over, into):
    """Sleeps half a millisecond at a time on one processor, above the nodes, and notes when it wakes late."""
    for ending in (signal.SIGINT, signal.SIGTERM):  # the parent says when it is over
        signal.signal(ending, signal.SIG_IGN)
    os.sched_setaffinity(0, {cpu})
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(60))
    except PermissionError:
        pass
    stalls = []
    while not over.is_set():
        due = time.monotonic_ns() + MS // 2
        time.sleep(0.0005)
        now = time.monotonic_ns()
        if now - due > MS // 4:
            stalls.append((due, now))
    into.put(stalls)


class Witnesses:
    def __enter__(self):
        self.over, self.into, self.stalls = Event(), Queue(), []
        self.all = [Process(target=witness, args=(cpu, self.over, self.into)) for cpu in os.sched_getaffinity(0)]
        [one.start() for one in self.all]
        return self

    def __exit__(self, *_):
        self.over.set()
        self.stalls = [stall for _ in self.all for stall in self.into.get()]
        [one.join() for one in self.all]


def stood_still(stalls, begin, end):
    """For how long of a window, two witnesses of one stall counted once."""
    total, reached = 0, begin
    for a, b in sorted(stalls):
        a, b = max(a, reached), min(b, end)
        if b > a:
            total, reached = total + b - a, b
    return total


def topology(draw, discipline):
    """The segments and the ports of all stations, as the random worlds of the simulator have them."""
    count = draw.randint(2, 3)
    links = [draw.random() < 0.5 for _ in range(count)]
    if draw.random() < 0.8:
        links[draw.randrange(count)] = True
    rate = draw.choice(RATES)
    rates = [max(rate // draw.choice(19 * [1] + [10]), 10) for _ in range(count)]
    ports = [[on - 1, on] for on in range(1, count)] + [[0], [count - 1]]
    while len(ports) < NODES_MAX and draw.random() < 0.67:
        on = draw.randrange(count)
        if not links[on]:
            ports.append([on])
    lines = []
    for on, is_link in enumerate(links):
        lines += ["[[segment]]", f'name = "s{on}"', f'rate = "{rates[on]}mbit"']
        if is_link:
            lines += ['medium = "link"', f'discipline = "{discipline[0]}"', f'regulator = "{discipline[1]}"']
    for station, segments in enumerate(ports):
        lines += ["[[station]]", f'name = "n{station}"']
        lines += [f'eth{port} = "s{on}"' for port, on in enumerate(segments)]
    return "\n".join(lines), links, ports, min(rates)


class Lab:
    def __init__(self, rota, name, text, folder):
        self.rota, self.name, self.folder = rota, name, folder
        (folder / "topology.toml").write_text(text)
        self.call("up", "--topology", str(folder / "topology.toml"))

    def call(self, what, *words):
        words = [self.rota, "lab", what, "--name", self.name, *words]
        return subprocess.run(words, check=True, capture_output=True, text=True, timeout=120).stdout

    def start(self, station, *words, out=None):
        words = [self.rota, "lab", "exec", "--name", self.name, f"n{station}", "--", *map(str, words)]
        out = open(self.folder / out, "w") if out else subprocess.DEVNULL
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.DEVNULL)

    def stalls(self, stations):
        """What the nodes have noticed."""
        all = []
        for station in range(stations):
            status = json.loads(self.call("exec", f"n{station}", "--", self.rota, "status", "--json"))
            all += [(of["from_ns"], of["to_ns"]) for of in status.get("extra", {}).get("stalls", [])]
        return all

    def document(self, name):
        try:
            return json.loads((self.folder / name).read_text() or "{}")
        except ValueError:
            return {}

    def units(self, name):
        lines = (self.folder / name).read_text().splitlines()
        return [json.loads(line) for line in lines if line.endswith("}")]


def world(args, at, folder):
    """Runs one lab; its channels with their units, and the stalls."""
    draw, discipline = random.Random(f"{args.seed} {at}"), DISCIPLINES[at % len(DISCIPLINES)]
    text, links, ports, slowest = topology(draw, discipline)
    lab = Lab(args.rota, f"count{os.getpid()}-{at}", text, folder)
    try:
        pairs = [(a, b) for a in range(len(ports)) for b in range(len(ports)) if not set(ports[a]) & set(ports[b])]
        channels, running = [], []
        with Witnesses() as seen:
            for service in range(1, CHANNELS + 1):
                a, b = draw.choice(pairs)
                manner = draw.choice(["greedy", "greedy", "greedy", "random", "random", "hasty"])
                running.append(lab.start(b, args.rota, "recv", "--service", service, "--log",
                                         folder / f"{service}.log", "--json", out=f"{service}.recv"))
                channels.append((service, a, b, manner))
            time.sleep(1)
            for on in [on for on, is_link in enumerate(links) if not is_link][:1]:
                hosts = [n for n, segments in enumerate(ports) if on in segments]
                if len(hosts) > 1:
                    a, b = draw.sample(hosts, 2)
                    running.append(lab.start(b, args.rota, "load", "sink", "--seconds", args.seconds))
                    running.append(lab.start(a, args.rota, "load", "udp", "--to", f"n{b}", "--seconds", args.seconds, *(
                        ["--rate", "20mbit"] if slowest > 100 else [])))
            sources = []
            for service, a, b, manner in channels:
                period = draw.randint(1_000, 40_000)  # us
                # Each station of a RETHER segment reads all of its frames: one machine has to do it for all.
                load = draw.uniform(*LOAD) * min(3 / len(ports), 1)
                octets = int(load * slowest * period / 8)
                octets = min(max(octets, 200), OCTETS_MAX)
                delay = draw.choice([0, draw.randint(60, 250) * MS])
                sources.append(lab.start(a, args.source, f"n{b}", service, octets, period * 1_000, delay, manner,
                                         args.seconds, draw.getrandbits(31), out=f"{service}.sent"))
            for one in sources:
                one.wait(args.seconds + 60)
            time.sleep(1)
            stalls = lab.stalls(len(ports))
            for one in running:
                one.terminate()
                one.wait(20)
        told = []
        for service, a, b, manner in channels:
            sent, came = lab.document(f"{service}.sent"), lab.document(f"{service}.recv")
            stalls += [(of["from_ns"], of["to_ns"]) for of in came.get("stalls", [])]
            if sent.get("error") or sent.get("ended"):
                raise OSError(f"channel {service}: {sent.get('error') or sent['ended']}")
            if "bound_ns" in sent:
                told.append(dict(sent, service=service, manner=manner, units=lab.units(f"{service}.log")))
        return discipline, told, stalls + seen.stalls
    finally:
        lab.call("down")


def judge(channel, stalls):
    """The units that were late, or did not come whole: number, time, bound and the stalls that met it."""
    bound, wrong, longest, before, behind = channel["bound_ns"], [], 0, None, None
    for unit in channel["units"]:
        took = unit["arrived_ns"] - unit["schedule_ns"]
        begin = unit["schedule_ns"] - CYCLE
        for lost in range((before["unit"] if before else -1) + 1, unit["unit"]):
            since = before["schedule_ns"] if before else begin
            wrong.append((lost, "lost", 0, stood_still(stalls, since, unit["arrived_ns"])))
        if not unit["complete"]:
            wrong.append((unit["unit"], "incomplete", took, stood_still(stalls, begin, unit["arrived_ns"])))
        elif took > bound:
            # A source without pauses carries what a stall has left over to the units behind it.
            behind = min(behind or begin, begin)
            wrong.append((unit["unit"], "late", took, stood_still(stalls, behind, unit["arrived_ns"])))
        else:
            longest, behind = max(longest, took), None
        before = unit
    # Those behind the last one that came, by the receiver's count. It counts a unit as incomplete or as lost.
    missing = channel["lost"] + channel["incomplete"] - sum(1 for _, what, _, _ in wrong if what != "late")
    wrong += [((before or {"unit": -1})["unit"] + 1 + k, "lost", 0, 0) for k in range(max(missing, 0))]
    return wrong, longest


def explains(what, took, bound, stalled):
    return stalled >= took - bound if what == "late" else stalled >= MS


class Table:
    def __init__(self):
        self.rows, self.wrong = {}, []

    def add(self, at, discipline, told, stalls):
        for channel in told:
            over_link = "link" in channel["media"]
            row = self.rows.setdefault(discipline if over_link else ("rether", ""), dict.fromkeys(
                ("channels", "units", "packets", "late", "lost", "unexplained", "longest_ppm"), 0))
            row["packets"] += channel["packets"]
            row["channels"] += 1
            row["units"] += len(channel["units"])
            if channel["manner"] == "hasty":
                continue  # it is promised nothing
            wrong, longest = judge(channel, stalls)
            row["longest_ppm"] = max(row["longest_ppm"], longest * 1_000_000 // channel["bound_ns"])
            for unit, what, took, stalled in wrong:
                is_explained = explains(what, took, channel["bound_ns"], stalled)
                row["late" if what == "late" else "lost"] += 1
                row["unexplained"] += not is_explained
                self.wrong.append((at, channel["service"], unit, what, took, channel["bound_ns"], stalled,
                                   "host-stall" if is_explained else "unexplained"))

    def sum(self, key):
        return sum(row[key] for row in self.rows.values())


def append(path, head, rows):
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        write = csv.writer(file, lineterminator="\n").writerows
        write(([head] if is_new else []) + rows)


def build(args):
    args.source = str(Path(args.rota).parent / "rota-source")
    if not args.built:
        subprocess.run(["cargo", "build", "--release", "-p", "rota-cli", "-p", "rota-c"], cwd=ROOT, check=True)
    words = ["cc", "-O2", "-Wall", "-Wextra", "-o", args.source, str(ROOT / "verify/source.c"), f"-I{ROOT}/bindings/c/include"]
    words += [str(Path(args.rota).parent / "librota_c.a"), "-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl"]
    subprocess.run(words, check=True)


def main():
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    say = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    say.add_argument("--packets", type=int, required=True)
    say.add_argument("--seed", type=int, default=1)
    say.add_argument("--first", type=int, default=0, help="number of the first lab")
    say.add_argument("--seconds", type=int, default=60, help="of each lab")
    say.add_argument("--rota", default=str(target / "release/rota"), help="the program; librota_c.a stands beside it")
    say.add_argument("--built", action="store_true", help="build nothing with cargo")
    say.add_argument("--table", type=Path, default=ROOT / "verify/namespaces.csv")
    args = say.parse_args()
    build(args)
    label = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    for ending in (signal.SIGINT, signal.SIGTERM):  # also where a shell has it ignored
        signal.signal(ending, signal.default_int_handler)
    table, at, failed, begun = Table(), args.first, 0, time.monotonic()
    try:
        while table.sum("packets") < args.packets and failed < 10:
            with tempfile.TemporaryDirectory(prefix="rota-count-") as folder:
                try:
                    table.add(at, *world(args, at, Path(folder)))
                except (subprocess.SubprocessError, OSError) as error:
                    failed += 1
                    print(f"lab {at}: {error} {getattr(error, 'stderr', '') or ''}", file=sys.stderr)
            at += 1
            print(f"lab {at - 1}, {time.monotonic() - begun:.0f} s: {table.sum('packets')} packets of {args.packets}, "
                  f"{table.sum('late')} late, {table.sum('lost')} lost, {table.sum('unexplained')} unexplained", flush=True)
    except KeyboardInterrupt:
        pass
    keys = ("channels", "units", "packets", "late", "lost", "unexplained", "longest_ppm")
    rows = [[label, args.seed, f"{args.first}-{at - 1}", *which, *(row[key] for key in keys)] for which, row in sorted(table.rows.items())]
    append(args.table, ["program", "seed", "labs", "scheduler", "regulator", *keys], rows)
    if table.wrong:
        head = ["program", "seed", "lab", "channel", "unit", "what", "took_ns", "bound_ns", "stalled_ns", "cause"]
        late = args.table.with_name(args.table.stem + "-late.csv")
        append(late, head, [[label, args.seed, *one] for one in table.wrong])
    for row in rows:
        print(*row[3:], sep="  ")
    excused = len(table.wrong) - table.sum("unexplained")
    if excused > UNFIT * max(table.sum("units"), 1):
        print(f"machine unfit to judge: its stalls explain {excused} units", file=sys.stderr)
    return 1 if table.sum("unexplained") or failed or excused > UNFIT * max(table.sum("units"), 1) else 0


if __name__ == "__main__":
    sys.exit(main())
