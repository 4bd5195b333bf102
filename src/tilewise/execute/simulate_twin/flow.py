"""Data flow in a simulation: who hears of a task that has ended, and who takes what is ready."""

from __future__ import annotations

import heapq

from tilewise.execute.simulate_twin.phases import Phases
from tilewise.execute.simulate_twin.state import ReadyGroup, ReadyQueue, What, Worker


class Flow(Phases):
    """Ready tasks wait in queues, which form groups; a task is ready in the group that is its home."""

    def start_ready_queues(self) -> None:
        """A queue and a group are in the node of the first worker that takes from them."""
        s = self.schedule
        queue_of = s["ready_queue"].tolist() if "ready_queue" in s else [0] * len(self.workers)
        group_of = s["ready_group"].tolist() if "ready_group" in s else [0]
        self.home = s["home"].tolist() if "home" in s else [0] * len(self.needed)
        self.groups = [ReadyGroup() for _ in range(max(group_of) + 1)]
        self.ready = [ReadyQueue(number, self.groups[g]) for number, g in enumerate(group_of)]
        for queue in self.ready:
            queue.group.queues.append(queue)
        for me, number in reversed(list(zip(self.workers, queue_of, strict=True))):
            me.ready = self.ready[number]
            me.ready.node = me.ready.group.node = me.node
            me.ready.workers.insert(0, me)

    def begin_flow(self) -> None:
        self.start_ready_queues()
        for task, needed in enumerate(self.needed):
            if needed == 0:
                self.make_ready(task, None)
        for w in range(len(self.workers)):
            self.offer(w)
        self.give_ready_tasks(0.0)

    # Who hears of a task that has ended

    def release_successors(self, w: int, task: int, time: float) -> None:
        """What the next task of a list waits for, or what is ready now."""
        first, last = (int(self.schedule["first_successor"][task + k]) for k in (0, 1))
        following = self.schedule["successors"][first:last].tolist()
        if self.by_dataflow:
            self.tell(w, following, time)
            return
        for successor in following:
            self.needed[successor] -= 1
            if self.needed[successor] == 0 and successor in self.waiting:
                self.work_on(self.waiting[successor], time)

    def tell(self, w: int, following: list[int], time: float) -> None:
        """One message to each home of successors that is in another node."""
        me, machine = self.workers[w], self.machine
        free = machine["ready_latency"] == machine["ready_activation"] == 0.0
        for home in dict.fromkeys(self.home[task] for task in following):
            those = [task for task in following if self.home[task] == home]
            if free or self.groups[home].node == me.node:
                self.count_down(those, me)
                continue
            me.sums["activations"] += 1
            sent = self.nodes[me.node].messenger.answer(time, machine["ready_activation"])
            self.activations.append(those)
            self.at(sent + machine["ready_latency"], w, What.TOLD, len(self.activations) - 1)

    def told(self, w: int, message: int, time: float) -> None:
        """An activation message has come to its node, which reads one after the other."""
        home = self.home[self.activations[message][0]]
        messenger = self.nodes[self.groups[home].node].messenger
        read = messenger.answer(time, self.machine["ready_activation"])
        self.at(read, w, What.ACTIVATED, message)

    def count_down(self, those: list[int], by: Worker | None) -> None:
        for task in those:
            self.needed[task] -= 1
            if self.needed[task] == 0:
                self.make_ready(task, by)

    def make_ready(self, task: int, by: Worker | None) -> None:
        """In the own queue of the worker that has made it ready, if it is at the task's home."""
        group = self.groups[self.home[task]]
        at_home = by is not None and by.ready is not None and by.ready.group is group
        queue = by.ready if by and by.ready and at_home else group.queues[task % len(group.queues)]
        heapq.heappush(queue.tasks, (-self.schedule["priority"][task], task))
        self.look_at(queue)

    # Who takes what is ready

    def is_idle(self, me: Worker) -> bool:
        return not me.asking and me.unfinished == 0

    def is_hungry(self, me: Worker) -> bool:
        """It may take a task ahead."""
        return not me.asking and me.unfinished > 0 and self.may_take(me)

    def offer(self, w: int) -> None:
        me = self.workers[w]
        if me.ready and (self.is_idle(me) or self.is_hungry(me)):
            self.look_at(me.ready)

    def look_at(self, queue: ReadyQueue) -> None:
        if queue.number not in self.changed:
            self.changed.append(queue.number)

    def give_ready_tasks(self, time: float) -> None:
        """Each queue to its own workers, then what is left to those of its group that have nothing to do."""
        while self.changed:
            those, self.changed = [self.ready[number] for number in self.changed], []
            for queue in those:
                self.give_to_own(queue, time)
            for queue in those:
                self.give_to_thieves(queue, time)

    def give_to_own(self, queue: ReadyQueue, time: float) -> None:
        """To those that have nothing to do; then to those that may take one ahead."""
        while queue.tasks:
            taker = next(filter(self.is_idle, queue.workers), None)
            taker = taker or next(filter(self.is_hungry, queue.workers), None)
            if taker is None:
                return
            self.give(queue, taker, time)

    def give_to_thieves(self, queue: ReadyQueue, time: float) -> None:
        """Others take from a full queue; its workers take from others if it is empty: from the next one."""
        group = queue.group
        if len(group.queues) == 1:
            return
        while queue.tasks:
            members = (me for me in self.workers if me.ready and me.ready.group is group)
            thief = next(filter(self.is_idle, members), None)
            if thief is None:
                break
            self.give(queue, thief, time)
        while True:
            thief = next(filter(self.is_idle, queue.workers), None)
            filled = [other for other in group.queues if other.tasks]
            if thief is None or not filled:
                return
            victim = next((other for other in filled if other.number > queue.number), filled[0])
            self.give(victim, thief, time)

    def give(self, queue: ReadyQueue, me: Worker, time: float) -> None:
        """A task is chosen at once; its worker pays for the ways to and from the queue and its turn there."""
        task, w = heapq.heappop(queue.tasks)[1], self.workers.index(me)
        me.sums["steals"] += queue is not me.ready
        me.asking, me.asked, me.source = True, time, queue.number
        away = self.way_to_queue(me)
        if away > 0.0:
            self.at(time + away, w, What.TURN, task)
        else:
            self.turn(w, task, time)
        self.offer(w)

    def way_to_queue(self, me: Worker) -> float:
        return 0.0 if self.ready[me.source].node == me.node else float(self.machine["ready_latency"])

    def turn(self, w: int, task: int, time: float) -> None:
        me = self.workers[w]
        answer = self.ready[me.source].host.answer(time, self.machine["ready_service"])
        answer += self.way_to_queue(me)
        if answer > time:
            self.at(answer, w, What.GIVEN, task)
            return
        me.asking = False
        self.take(w, task, time)

    def given(self, w: int, task: int, time: float) -> None:
        self.answered_at(w, time)
        self.take(w, task, time)
        self.offer(w)
