"""Runs a command under the restrictions of a systemd unit, and records denied system calls.

    restrict.py UNIT DENIED COMMAND...

COMMAND runs as an unprivileged user with the unit's SystemCallFilter, SystemCallErrorNumber,
RestrictAddressFamilies, MemoryDenyWriteExecute, LimitMEMLOCK, AmbientCapabilities and
CapabilityBoundingSet. A system call that the filter does not list fails with the unit's error
number, and its name is written to the file DENIED, one line per call. If the unit has no error
number, such a call kills the program, as with systemd. Exit code 77: the machine lacks a facility
that this needs.
"""

import ctypes
import errno
import fcntl
import os
import resource
import select
import socket
import struct
import subprocess
import sys

NOTIFY, KILL, ALLOW = 0x7FC00000, 0x80000000, 0x7FFF0000
EQUAL, MASKED_EQUAL = 4, 7
RECEIVE, SEND = 0xC0502100, 0xC0182101
FAMILIES = {"AF_XDP": 44}


def unavailable(why):
    print(f"SKIPPED: {why}", file=sys.stderr)
    sys.exit(77)


try:
    seccomp = ctypes.CDLL("libseccomp.so.2", use_errno=True)
except OSError:
    unavailable("no libseccomp.so.2 (Debian package libseccomp2)")
seccomp.seccomp_init.restype = ctypes.c_void_p
seccomp.seccomp_syscall_resolve_num_arch.restype = ctypes.c_char_p


class Compare(ctypes.Structure):
    _fields_ = [("arg", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64)]


def settings(unit):
    """Maps each setting to its words; repeated settings are concatenated."""
    found = {}
    for line in open(unit):
        key, is_setting, value = line.strip().partition("=")
        if is_setting and not key.startswith("#"):
            found.setdefault(key, []).extend(value.split())
    return found


def calls(word):
    """The system calls that a word names; a word with @ names a group."""
    if not word.startswith("@"):
        return {word}
    shown = subprocess.run(["systemd-analyze", "syscall-filter", word], capture_output=True, text=True)
    if shown.returncode != 0:
        sys.exit(f"systemd-analyze syscall-filter {word}: {shown.stderr}")
    lines = [line.strip() for line in shown.stdout.splitlines()[1:]]
    return set().union(*(calls(line) for line in lines if line and not line.startswith("#")))


def load(unit):
    """Loads the filter. Returns the descriptor that reports denied calls.

    Returns None if denied calls kill the program.
    """
    words = unit["SystemCallFilter"]
    assert words and not any(word.startswith("~") for word in words), words
    allowed = set().union(*map(calls, words))
    notifies = "SystemCallErrorNumber" in unit
    context = ctypes.c_void_p(seccomp.seccomp_init(ctypes.c_uint32(NOTIFY if notifies else KILL)))

    def allow(name, *compares):
        number = seccomp.seccomp_syscall_resolve_name(name.encode())
        # A call of another architecture or of a newer kernel.
        if number < 0:
            return
        array = (Compare * len(compares))(*compares)
        result = seccomp.seccomp_rule_add_array(context, ctypes.c_uint32(ALLOW), number, len(compares), array)
        assert result == 0, (name, result)

    families = unit.get("RestrictAddressFamilies", [])
    no_wx = unit.get("MemoryDenyWriteExecute") == ["yes"]
    for name in sorted(allowed):
        if name == "socket" and families:
            for family in families:
                number = FAMILIES.get(family) or getattr(socket, family)
                allow(name, Compare(0, EQUAL, number, 0))
        elif name == "mmap" and no_wx:
            for protection in (0, 2, 4):
                allow(name, Compare(2, MASKED_EQUAL, 6, protection))
        elif name in ("mprotect", "pkey_mprotect") and no_wx:
            allow(name, Compare(2, MASKED_EQUAL, 4, 0))
        else:
            allow(name)
    result = seccomp.seccomp_load(context)
    if result != 0:
        unavailable(f"the kernel does not support the filter: {os.strerror(-result)}")
    return seccomp.seccomp_notify_fd(context) if notifies else None


def supervise(notify, number, denied):
    """Lets denied calls fail with error `number` and writes their names to `denied`.

    Returns when all filtered processes have ended.
    """
    poll = select.poll()
    poll.register(notify, select.POLLIN)
    while True:
        flags = poll.poll()[0][1]
        if not flags & select.POLLIN:
            return
        request = bytearray(80)
        try:
            fcntl.ioctl(notify, RECEIVE, request)
        except OSError:
            continue  # The process was interrupted or has ended.
        identity, pid, _, call, arch = struct.unpack_from("QIIiI", request)
        arguments = struct.unpack_from("6Q", request, 32)
        name = seccomp.seccomp_syscall_resolve_num_arch(arch, call)
        shown = ", ".join(hex(argument) for argument in arguments)
        denied.write(f"{name.decode() if name else call} ({shown})\n")
        denied.flush()
        try:
            fcntl.ioctl(notify, SEND, bytearray(struct.pack("QqiI", identity, 0, -number, 0)))
        except OSError:
            pass  # The process has ended.


def may_lock_memory(unit):
    """Sets the unit's limit of locked memory.

    Returns False if the machine does not allow it, as in some containers.
    """
    if unit.get("LimitMEMLOCK") != ["infinity"]:
        return True
    try:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    except ValueError:
        return False
    return True


def main():
    unit, denied, command = settings(sys.argv[1]), open(sys.argv[2], "w"), sys.argv[3:]
    number = getattr(errno, unit.get("SystemCallErrorNumber", ["EPERM"])[0])
    more = [] if may_lock_memory(unit) else ["CAP_IPC_LOCK"]
    capabilities, bounds = (
        ",".join("+" + name.removeprefix("CAP_").lower() for name in unit[key] + more)
        for key in ("AmbientCapabilities", "CapabilityBoundingSet")
    )
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        ours.close()
        null = os.open("/dev/null", os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        _, descriptors, _, _ = socket.recv_fds(theirs, 1, 1)
        theirs.close()
        if descriptors:
            supervise(descriptors[0], number, denied)
        os._exit(0)
    theirs.close()
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all," + bounds,
            "--inh-caps=-all," + capabilities, "--ambient-caps=-all," + capabilities]
    notify = load(unit)
    if notify is None:
        ours.send(b"-")
    else:
        socket.send_fds(ours, [b"+"], [notify])
        os.close(notify)
    ours.close()
    os.execvp(user[0], user + command)


main()
