"""Phases of a simulation: queues, counters and thieves."""

from __future__ import annotations

from tilewise.execute.simulate_twin.state import Queue, What, Worker
from tilewise.execute.simulate_twin.tasks import Tasks
from tilewise.schedule.loops import Loop
from tilewise.schedule.schedule import TAKING, Rule


class Phases(Tasks):
    """Which task a worker takes next from its queue."""

    def begin_phase(self, p: int) -> None:
        s, self.phase = self.schedule, p
        self.queues = {q: self.queue(q) for q in range(s["first_queue"][p], s["first_queue"][p + 1])}
        for w in range(len(self.workers)):
            self.join_queue(w)
        time = self.end
        for w in range(len(self.workers)):
            self.work_on(w, time)

    def queue(self, q: int) -> Queue:
        s = self.schedule
        own = slice(s["first_task"][q], s["first_task"][q + 1])
        tasks, taking, loop = s["tasks"][own].tolist(), TAKING[s["taking"][q]], None
        if taking != "fixed":
            literal, taper = bool(s["literal"][q]), bool(s["taper"][q])
            rule = Rule(taking, s["f"][q], s["delta"][q], int(s["probe"][q]), literal, taper, s["most"][q])
            loop = Loop(rule, s["work"][own], len(self.workers))
        return Queue(tasks, int(s["quantum"][q]), loop, back=len(tasks))

    def join_queue(self, w: int) -> None:
        me = self.workers[w]
        me.own = me.source = int(self.schedule["worker_queue"][self.phase * len(self.workers) + w])
        me.next = me.last = 0
        me.measured, me.exhausted = False, me.own < 0
        if me.own < 0:
            return
        queue = self.queues[me.own]
        queue.node = me.node if queue.node < 0 else queue.node
        queue.in_one_node &= queue.node == me.node
        if queue.quantum == 0:  # a list of its own
            me.last, me.exhausted = len(queue.tasks), True

    def work_on(self, w: int, time: float) -> None:
        """Takes what it may take now, asks for more, or is through with its queue."""
        me = self.workers[w]
        while not me.asking:
            if me.next < me.last:
                task = self.queues[me.source].tasks[me.next]
                if task >= 0 and not self.may_take(me):
                    return
                if task >= 0 and self.needed and self.needed[task] > 0:
                    self.waiting[task] = w
                    return
                me.next += 1
                if task >= 0:
                    self.take(w, task, time)
            elif me.exhausted:
                if me.unfinished == 0:
                    self.leave(w, time)
                return
            else:
                # A loop goes by the time that the chunk before has taken.
                queue = self.queues[me.own]
                if me.unfinished > 0 if queue.loop else not self.may_take(me):
                    return
                me.asking, me.asked = True, time
                self.at(time + self.away(me, queue), w, What.ASKED)

    def away(self, me: Worker, queue: Queue) -> float:
        return 0.0 if queue.node == me.node else float(self.machine["counter_latency"])

    def draw(self, w: int, time: float) -> None:
        """A call has reached the host of the counter, behind those that came before."""
        me, machine = self.workers[w], self.machine
        queue = self.queues[me.own]
        room = () if queue.in_one_node else (machine["counter_buffers"], machine["counter_resend"])
        service = machine["counter_shared"] if queue.in_one_node else machine["counter_service"]
        answer = queue.host.answer(time, service, *room)
        me.sums["counter_calls"] += 1
        if queue.loop:
            me.next, me.last = queue.loop.next(w, me.asked - me.answered if me.measured else 0.0)
        else:
            me.next, me.last = queue.front, queue.front + min(queue.quantum, queue.left)
            queue.front = me.last
        me.measured, me.exhausted = True, me.next == me.last
        self.at(answer + self.away(me, queue), w, What.ANSWERED)

    def answered(self, w: int, time: float) -> None:
        self.answered_at(w, time)
        self.work_on(w, time)

    def answered_at(self, w: int, time: float) -> None:
        me = self.workers[w]
        me.asking, me.answered = False, time
        if not me.fetching:  # who waits for data over a link waits for these, whatever else is under way
            me.sums["counter"] += max(0.0, time - max(me.asked, me.free))

    def leave(self, w: int, time: float) -> None:
        """Its queue is empty and its work is done: it steals, or ends when its messages are through."""
        me = self.workers[w]
        if self.schedule["steal"][self.phase] and self.steal(w, time):
            return
        if me.link > time:
            me.sums["communication"] += me.link - time
            me.free = me.link
        self.end = max(self.end, time, me.link)

    def steal(self, w: int, time: float) -> bool:
        """The last task of the longest queue. It is chosen at once and paid for on the way."""
        me, machine = self.workers[w], self.machine
        left, negative = max((queue.left, -q) for q, queue in self.queues.items())
        if left == 0:
            return False
        me.source, victim = -negative, self.queues[-negative]
        me.next, me.last, victim.back = victim.back - 1, victim.back, victim.back - 1
        me.sums["steals"] += 1
        near = victim.node < 0 or victim.node == me.node
        away = 0.0 if near else machine["counter_latency"]
        service = machine["counter_shared"] if near else machine["counter_service"]
        me.asking, me.asked = True, time
        self.at(victim.host.answer(time + away, service) + away, w, What.ANSWERED)
        return True
