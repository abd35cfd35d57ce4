"""Runs a program whose standard error is a terminal, and prints as JSON what it wrote and how it ended.

terminal.py PROGRAM ARGUMENT...     {"code": number, "stdout": text, "stderr": text}
"""

import json
import os
import pty
import subprocess
import sys
import threading


def heard(terminal, into):
    while True:
        try:
            part = os.read(terminal, 4096)
        except OSError:  # What Linux says when the other side is closed.
            return
        if not part:
            return
        into.append(part)


def main():
    terminal, of_program = pty.openpty()
    program = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=of_program)
    os.close(of_program)
    parts = []
    listener = threading.Thread(target=heard, args=(terminal, parts))
    listener.start()
    stdout, _ = program.communicate()
    listener.join()
    stderr = b"".join(parts).decode()
    print(json.dumps({"code": program.returncode, "stdout": stdout.decode(), "stderr": stderr}))


main()
