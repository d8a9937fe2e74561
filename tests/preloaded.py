"""The command, in processes that are forked from one that has imported all of it: most of what a start costs is importing.

A test whose subject is the start itself, or a signal, starts the command as it is.
"""

import atexit
import fcntl
import gc
import importlib
import os
import pkgutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import reconciler
from reconciler.cli import main

PIECE = 1 << 16
"""Bytes that are received at once."""

CLIENT = """\
#!{python} -ISE
import _socket, os, sys
asked = _socket.socket(_socket.AF_UNIX)
asked.connect({address!r})
variables = [name + b"=" + value for name, value in os.environb.items()]
words = [os.getcwdb(), b"%d" % len(sys.argv[1:]), *map(os.fsencode, sys.argv[1:]), *variables]
request = b"\\0".join(words)
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
sent = asked.sendmsg([request], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
asked.sendall(request[sent:])
asked.shutdown(_socket.SHUT_WR)
os._exit((asked.recv(1) or b"\\xff")[0])
"""
"""The program `reconciler`: hands its arguments, folder, environment and streams over, and ends as the command ends."""


@contextmanager
def preloaded() -> Iterator[Path]:
    """Run the server; yield the program, which runs the command."""
    with TemporaryDirectory() as folder:
        address, program = Path(folder) / "socket", Path(folder) / "reconciler"
        program.write_text(CLIENT.format(python=sys.executable, address=str(address)))
        program.chmod(0o755)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(address))
            listener.listen()
            line = [sys.executable, "-m", __name__, str(listener.fileno())]
            kept = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
            root = Path(__file__).parents[1]
            with subprocess.Popen(line, cwd=root, env=kept, pass_fds=[listener.fileno()]) as server:
                try:
                    yield program
                finally:
                    server.terminate()


def serve(listener: socket.socket) -> None:
    """Fork a process for each request."""
    for module in pkgutil.walk_packages(reconciler.__path__, "reconciler."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    gc.freeze()
    while True:
        asked, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            os._exit(answer(asked))
        asked.close()
        with suppress(ChildProcessError):  # there is none
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def answer(asked: socket.socket) -> int:
    """Run the command of a request as a process of its own would, and send and return the exit code."""
    request, streams, _, _ = socket.recv_fds(asked, PIECE, 3)
    while piece := asked.recv(PIECE):
        request += piece
    folder, count, *words = os.fsdecode(request).split("\0")
    fcntl.fcntl(asked, fcntl.F_SETOWN, os.getpid())  # when the program is killed, SIGIO ends this process
    fcntl.fcntl(asked, fcntl.F_SETFL, os.O_ASYNC)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update({name: value for name, _, value in (word.partition("=") for word in words[int(count) :])})
    try:
        main(words[: int(count)])
    except SystemExit as ended:
        code = int(ended.code or 0)
    atexit._run_exitfuncs()
    sys.stdout.flush()
    asked.send(bytes([code]))
    return code


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
