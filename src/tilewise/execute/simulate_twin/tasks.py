"""Tasks of a simulation: their data come, they compute, their results go."""

from __future__ import annotations

import math

from tilewise.execute.simulate_twin.state import Fetching, Node, State, What


def _scattered(x: int) -> int:
    """Spreads numbers evenly (the finalizer of splitmix64)."""
    every = (1 << 64) - 1
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & every
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & every
    return x ^ (x >> 31)


class Tasks(State):
    """What happens to a task that a worker has taken."""

    def take(self, w: int, task: int, time: float) -> None:
        """The first message goes out now, behind those that are under way.

        Where links are shared, what comes then is not known before it happens; else the task's times are.
        """
        me, gets, machine = self.workers[w], self.gets[task], self.machine
        me.sums["messages"] += gets + int(self.tasks["puts"][task])
        me.unfinished += 1
        me.ahead += machine["prefetch"] > 0
        if machine["links"] and (gets or me.fetching):
            me.fetching.append(Fetching(task, time))
            if len(me.fetching) == 1:
                self.get(w, time)
            return
        first = every = time
        if gets:
            whole = gets * machine["latency"] + self.tasks["bytes_got"][task] / machine["bandwidth"]
            start = max(time, me.link)
            every = me.link = start + whole
            first = start + whole / gets if machine["overlap"] else every
        work = self.tasks["seconds"][task]
        start, end = self.compute(w, time, first, work, True)
        # With overlap the last part of the work waits for the last message.
        last = max(end, self.computed_by(w, every, work / gets)) if every > first else end
        me.sums["communication"] += last - end
        me.free = last
        self.computed_at(w, task, time, start + (last - end), last)

    def compute(
        self, w: int, taken: float, here: float, work: float, first_part: bool
    ) -> tuple[float, float]:
        """Work on data that come at `here`, of a task taken before: when it starts and ends."""
        me = self.workers[w]
        start = max(here, me.free)
        end = self.computed_by(w, start, work)
        if first_part and self.machine["prefetch"]:
            self.at(start, w, What.BEGUN)
        me.sums["communication"] += start - max(taken, me.free)
        me.sums["busy"] += end - start
        me.free = end
        return start, end

    def computed_at(self, w: int, task: int, taken: float, start: float, end: float) -> None:
        """The trace shows the work in one piece at the end, and all waiting for data before it."""
        self.trace[task] = (w, *(math.floor(1e9 * time + 0.5) for time in (taken, start, end)))
        self.at(end, w, What.COMPUTED, task)

    def get(self, w: int, time: float) -> None:
        """Over links: the next message of the task that was taken first, now or when its node has fewer."""
        me, limit = self.workers[w], self.machine["in_flight"]
        task, mine = me.fetching[0], self.nodes[me.node]
        source = self.node_with(task.task, task.got) if self.gets[task.task] else me.node
        if source == me.node:
            self.at(time, w, What.HERE, task.task)
        elif limit and mine.in_flight == limit:
            mine.held.append(w)
        else:
            mine.in_flight += 1
            self.send(w, self.nodes[source], time)

    def send(self, w: int, other: Node, time: float) -> None:
        """Gets for which the other node has no buffer are sent again and again: that takes time there."""
        task, machine = self.workers[w].fetching[0].task, self.machine
        other.wanted += 1
        again = max(0, other.wanted - machine["link_buffers"]) if machine["link_buffers"] else 0
        start = max(time, other.out)
        other.out = start + self.bytes_of_get(task) / machine["bandwidth"] + again * machine["link_resend"]
        self.at(start, w, What.LEAVES, task)

    def leaves(self, w: int, task: int, time: float) -> None:
        """It passes through the link of the other node and through the own one at the same time."""
        me = self.workers[w]
        self.nodes[self.node_with(task, me.fetching[0].got)].wanted -= 1
        mine = self.nodes[me.node]
        mine.into = max(mine.into, time) + self.bytes_of_get(task) / self.machine["bandwidth"]
        self.at(mine.into + self.machine["latency"], w, What.CAME, task)

    def came(self, w: int, time: float) -> None:
        mine = self.nodes[self.workers[w].node]
        mine.in_flight -= 1
        if mine.held:
            self.get(mine.held.popleft(), time)
        self.here(w, time)

    def here(self, w: int, time: float) -> None:
        """A task that waits for each message does a part of its work then, and then asks for the next one."""
        me, machine = self.workers[w], self.machine
        fetching = me.fetching[0]
        task, gets = fetching.task, max(self.gets[fetching.task], 1)
        in_parts = machine["overlap"] or not machine["prefetch"]
        first = not in_parts or fetching.got == 0
        fetching.got += 1
        last = fetching.got == gets
        if in_parts or last:
            part = self.tasks["seconds"][task] / (gets if in_parts else 1)
            start, end = self.compute(w, fetching.taken, time, part, first)
            if last:
                self.computed_at(w, task, fetching.taken, start - fetching.busy, end)
            fetching.busy += end - start
            if not last and not machine["overlap"]:
                self.at(end, w, What.PARTLY, task)
                return
        if last:
            me.fetching.popleft()
        if me.fetching:
            self.get(w, time)

    def accumulate(self, w: int, task: int, time: float) -> None:
        """Without prefetch the worker waits until its result is in place; else it goes on."""
        me, machine, puts = self.workers[w], self.machine, int(self.tasks["puts"][task])
        seconds = self.tasks["bytes_put"][task] / machine["bandwidth"]
        if puts == 0 or (machine["links"] and self.node_with(task, -1) == me.node):
            self.at(time, w, What.DONE, task)
        elif machine["links"]:
            mine = self.nodes[me.node]
            start = max(mine.out, time)
            mine.out = start + seconds
            self.at(start, w, What.PUT, task)
        else:
            me.link = max(time, me.link) + (puts * machine["latency"] + seconds)
            self.at(me.link, w, What.DONE, task)
        if machine["prefetch"]:
            me.unfinished -= 1
            self.go_on(w, time)

    def put(self, task: int, w: int, time: float) -> None:
        other = self.nodes[self.node_with(task, -1)]
        other.into = max(other.into, time) + self.tasks["bytes_put"][task] / self.machine["bandwidth"]
        self.at(other.into + int(self.tasks["puts"][task]) * self.machine["latency"], w, What.DONE, task)

    def done(self, w: int, task: int, time: float) -> None:
        me, prefetch = self.workers[w], self.machine["prefetch"]
        self.end = max(self.end, time)
        if not prefetch:
            me.sums["communication"] += time - me.free
            me.free = time
            me.unfinished -= 1
        if self.needed:
            self.release_successors(w, task, time)
        if not prefetch:
            self.go_on(w, time)

    def computed_by(self, w: int, time: float, work: float) -> float:
        """When work that starts now is computed: speeds change with every stretch of time, if they drift."""
        machine = self.machine
        if machine["drift"] == 0.0:
            return self.work_until(w, time, math.inf, machine["speed"][w], work)[0]
        stretch = int(time / machine["stretch"])
        while work > 0.0:
            speed = machine["speed"][w] * self.drifted(w, stretch)
            time, work = self.work_until(w, time, (stretch + 1) * machine["stretch"], speed, work)
            stretch += 1
        return time

    def work_until(self, w: int, time: float, until: float, speed: float, work: float) -> tuple[float, float]:
        """When it stops, and what is left: with k jobs on the core, each has 1/k of its speed."""
        machine, first = self.machine, self.machine["first_load"]
        pieces: list[tuple[float, float]] = []  # (end, speed)
        for load in range(first[w], first[w + 1]):
            pieces += [(machine["load_from"][load], speed)]
            pieces += [(machine["load_to"][load], speed / machine["load_jobs"][load])]
        for end, rate in [*pieces, (until, speed)]:
            end = min(end, until)
            if end <= time or work <= 0.0:
                continue
            possible = (end - time) * rate
            time, work = (time + work / rate, 0.0) if work <= possible else (end, work - possible)
        return time, work

    def drifted(self, w: int, stretch: int) -> float:
        """How fast a core is in a stretch of time: log-normal, 1 on average."""

        def even(which: int) -> float:
            every = (1 << 64) - 1
            x = _scattered((int(self.machine["seed"]) + 0x9E3779B97F4A7C15 * (2 * w + which)) & every)
            return ((_scattered((x + stretch) & every) >> 11) + 0.5) * 2.0**-53

        width = math.sqrt(math.log1p(self.machine["drift"] ** 2))
        normal = math.sqrt(-2.0 * math.log(even(0))) * math.cos(6.283185307179586 * even(1))
        return math.exp(width * normal - 0.5 * width * width)

    def bytes_of_get(self, task: int) -> float:
        return float(self.tasks["bytes_got"][task] / self.gets[task])

    def node_with(self, task: int, get: int) -> int:
        """Of the data of a Get, or with -1 of a result. What is not known is spread evenly."""
        place = self.tasks.get("place", ())
        number = int(self.tasks["first_get"][task]) + get
        if get >= 0 and len(place):
            return min(len(self.nodes) - 1, int(place[number] * len(self.nodes)))
        return _scattered(2 * number if get >= 0 else 2 * task + 1) % len(self.nodes)
