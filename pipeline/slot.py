"""`slot CMD...`, on the PATH of an agent: wait for a slot of the validation lane, then run CMD. No import of ours.

Where no run serves slots any more, CMD runs at once. So does one that a CMD runs itself: its slot is held already.
"""

import os
import signal
import socket
import subprocess
import sys

DOOR = "DOIT_MUTATE_SLOTS"


def main(command: list[str]) -> int:
    if not command:
        sys.stderr.write("usage: slot COMMAND [ARGUMENT...]\n")
        return 2
    door = os.environ.pop(DOOR, "")
    with socket.socket(socket.AF_UNIX) as claim:  # the claim ends with this process, however that ends
        try:
            if door:
                claim.connect(door)
                claim.recv(1)
        except OSError:
            pass
        try:
            code = subprocess.call(command)
        except FileNotFoundError:
            sys.stderr.write(f"slot: {command[0]}: not found\n")
            return 127
        except PermissionError:
            sys.stderr.write(f"slot: {command[0]}: cannot be run\n")
            return 126
        except KeyboardInterrupt:
            return 128 + signal.SIGINT
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
