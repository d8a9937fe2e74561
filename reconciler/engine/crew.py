"""Threads for parallel requests, as many as the service may be asked for at once. Begin with `side_by_side`."""

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from queue import Empty, Queue, SimpleQueue
from threading import Lock, Thread
from typing import Generic, TypeVar

from reconciler.model.protocols import Concurrency, Reader
from reconciler.system.clock import GLANCE

MOST_HELPERS = 64
"""The most workers that help with the tasks of one `share_tasks`."""

Task = TypeVar("Task")
Question = TypeVar("Question", bound=Hashable)
Result = TypeVar("Result")
Asked = TypeVar("Asked", bound=Reader)


def ask_each(
    answer_from: Callable[[Question, Asked], Result], questions: Iterable[Question], service_reader: Asked
) -> dict[Question, Result]:
    """Return the answer of a reader to each question, in their order; see `side_by_side`."""
    ordered = list(questions)
    answers = side_by_side(lambda question: answer_from(question, service_reader), ordered, service_reader.concurrency)
    return dict(zip(ordered, answers, strict=True))


def side_by_side(work: Callable[[Task], Result], tasks: Iterable[Task], concurrency: Concurrency) -> list[Result]:
    """Do the same work for all tasks, at most `concurrency` at once; results in the order of the tasks.

    The concurrency is read again whenever a task ends: workers are started, or end, accordingly.

    The first exception ends the work: pending tasks are dropped, and running tasks are waited for. A
    `KeyboardInterrupt` waits for no task: the threads are daemons, so that a response that never comes cannot keep the
    process alive. Workers take one task after the other, since a future for each of a fleet's tasks would weigh more
    than its result.
    """
    results: dict[int, Result] = {}

    def do(numbered: tuple[int, Task]) -> None:
        number, task = numbered
        results[number] = work(task)

    Crew(do, enumerate(tasks), concurrency).run()
    return [results[number] for number in range(len(results))]


class Crew(Generic[Task]):
    """Threads that share tasks, as in `side_by_side`; a task may add further tasks.

    Attributes:
        is_over: whether the work has ended, with all tasks done or with an error.
    """

    def __init__(self, work: Callable[[Task], None], tasks: Iterable[Task], concurrency: Concurrency) -> None:
        self._work = work
        self._todo = deque(tasks)
        self._concurrency = concurrency
        self._ended = SimpleQueue[None]()
        self._workers: list[Thread] = []
        self._gone = 0
        self._errors: list[BaseException] = []
        self.is_over = False
        self._changing = Lock()

    def run(self) -> None:
        """Work on the tasks until all are done."""
        try:
            self._has_room()
            # A worker is in the list before the one that starts it ends.
            for _ in self._workers:
                self._wait_for_one()
            for worker in self._workers:
                worker.join()
        finally:
            self._end()
        if self._errors:
            raise self._errors[0]

    # The kernel may hand a signal to another thread, or to this one right before it waits: then nothing would end the
    # wait.
    def _wait_for_one(self) -> None:
        """Wait until a worker ends."""
        while True:
            try:
                return self._ended.get(timeout=GLANCE)
            except Empty:
                continue

    def add(self, task: Task, *, is_urgent: bool = False) -> None:
        """Add a task, from within a task. It is dropped if the work has ended."""
        with self._changing:
            if not self.is_over:
                # An urgent task is a share of one that a worker is waiting for.
                (self._todo.appendleft if is_urgent else self._todo.append)(task)
        self._has_room()

    def _has_room(self) -> bool:
        """Start as many workers as the concurrency allows; return whether it allows those that are running."""
        number = self._concurrency()
        with self._changing:
            room = number - len(self._workers) + self._gone
            for _ in range(min(room, len(self._todo))):
                self._workers.append(Thread(target=self._work_on, daemon=True))
                self._workers[-1].start()
            # A worker too many ends after its task: counted here, under the lock, so that two workers do not both end
            # for one.
            self._gone += room < 0
            return room >= 0

    def _work_on(self) -> None:
        try:
            for task in self._taken():
                self._work(task)
                if not self._has_room():
                    break
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            self._errors.append(error)
            self._end()
        self._ended.put(None)

    def _taken(self) -> Iterator[Task]:
        """Yield one task after the other, shared with other threads."""
        while True:
            with self._changing:
                if not self._todo:
                    self._gone += 1
                    return
                task = self._todo.popleft()
            yield task

    def _end(self) -> None:
        """Drop the pending tasks, and all that are added later."""
        with self._changing:
            self.is_over = True
            self._todo.clear()


def share_tasks(crew: Crew[Callable[[], None]], work: Callable[[Task], Result], tasks: Sequence[Task]) -> list[Result]:
    """Do the same work for some tasks, within a task of a crew, with the help of its idle workers.

    The results are in the order of the tasks; there are fewer if the work of the crew ends meanwhile.
    """
    todo = Queue[tuple[int, Task]]()
    for numbered in enumerate(tasks):
        todo.put(numbered)
    results: dict[int, Result] = {}
    errors: list[BaseException] = []

    def help_out() -> None:
        with suppress(Empty):
            while True:
                number, task = todo.get_nowait()
                try:
                    if not (errors or crew.is_over):
                        results[number] = work(task)
                except BaseException as error:  # noqa: BLE001 - it is raised where the tasks are waited for
                    errors.append(error)
                todo.task_done()

    for _ in tasks[1:MOST_HELPERS]:
        crew.add(help_out, is_urgent=True)
    help_out()
    todo.join()
    if errors:
        raise errors[0]
    return [results[number] for number in sorted(results)]
