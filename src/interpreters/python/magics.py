# The idioms of IPython, rewritten to plain calls. Only what does not parse as Python is
# looked at, and of that only the lines at which the parser stops: text inside a string
# can so never be touched.

import re
import time
import textwrap
import builtins as _builtins

_ASSIGNED = re.compile(r"^(\s*)([A-Za-z_][\w.,\s\[\]'\"]*?)\s*=\s*([!%])(?!=)(.*)$", re.S)
_HELP = re.compile(r"^(\s*)(\?{0,2})\s*([A-Za-z_][\w.\[\]'\"]*)\s*(\?{0,2})\s*$")
_CALL = "__hostler_magic__"


def rewritten(code, name):
    """Returns the cell as plain Python and its tree, or raises what the parser says."""
    _builtins.__hostler_magic__ = _magic
    first = code.lstrip()
    if first.startswith("%%"):
        head, _, body = first.partition("\n")
        source = "%s('cell', %r, %r)" % (_CALL, head[2:].strip(), body)
        return source, _parse(source, name)
    attempt = textwrap.dedent(code)
    if any(line.lstrip().startswith(">>>") for line in attempt.splitlines()):
        attempt = _without_prompts(attempt)
    rows = attempt.split("\n")
    original = None
    for _ in range(len(rows) + 1):
        try:
            source = "\n".join(rows)
            return source, _parse(source, name)
        except SyntaxError as error:
            original = original or error
            if not _rewrite(rows, (error.lineno or 1) - 1):
                raise original if not _is_ours(rows) else error
    raise original


def _is_ours(rows):
    return any(_CALL in row for row in rows)


def _parse(source, name):
    return _compile(source, name, "exec", ONLY_AST | TOP_LEVEL_AWAIT)


def _without_prompts(code):
    kept = []
    for row in code.splitlines():
        text = row.lstrip()
        if text.startswith(">>> ") or text.startswith("... "):
            kept.append(text[4:])
        elif text in (">>>", "..."):
            kept.append("")
    return "\n".join(kept)


def _rewrite(rows, at):
    """Rewrites the line at which the parser stopped, or the magic before it whose
    quotes or brackets made it stop there."""
    at = min(max(at, 0), len(rows) - 1)
    for row in range(at, max(-1, at - 50), -1):
        new, used = _line(rows, row)
        if new is not None:
            rows[row] = new
            for more in range(1, used):
                rows[row + more] = ""
            return True
    return False


def _line(rows, row):
    text, used = rows[row], 1
    if _CALL in text:
        return None, 0
    stripped = text.lstrip()
    indent = text[:len(text) - len(stripped)]
    if stripped[:1] in ("!", "%") or _ASSIGNED.match(text):
        while text.endswith("\\") and row + used < len(rows):
            text = text[:-1] + rows[row + used]
            used += 1
        stripped = text.lstrip()
    if stripped.startswith("!!"):
        return "%s%s('lines', %r)" % (indent, _CALL, stripped[2:]), used
    if stripped.startswith("!"):
        return "%s%s('system', %r)" % (indent, _CALL, stripped[1:]), used
    if stripped.startswith("%") and not stripped.startswith("%%"):
        return "%s%s('line', %r)" % (indent, _CALL, stripped[1:].strip()), used
    assigned = _ASSIGNED.match(text)
    if assigned:
        indent, target, sign, rest = assigned.groups()
        kind = "lines" if sign == "!" else "line"
        return "%s%s = %s(%r, %r)" % (indent, target, _CALL, kind, rest.strip()), used
    asked = _HELP.match(text)
    if asked and (asked.group(2) or asked.group(4)):
        return "%s%s('help', %r)" % (asked.group(1), _CALL, asked.group(3)), 1
    return None, 0


def _magic(kind, text, body=None):
    if kind == "system":
        return _system(text)
    if kind == "lines":
        return _lines(text)
    if kind == "help":
        return _help(text)
    name, _, rest = text.partition(" ")
    table = CELLS if kind == "cell" else LINES
    act = table.get(name)
    if act is None:
        sign = "%%" if kind == "cell" else "%"
        raise NameError("there is no magic %s%s; there are: %s" % (
            sign, name, " ".join(sign + known for known in sorted(table))))
    return act(rest.strip(), body) if kind == "cell" else act(rest.strip())


# -------------------------------------------------------------------- shell

_FIELD = re.compile(r"\$\$|\{([^{}]*)\}|\$([A-Za-z_]\w*)")


def _filled(text):
    def fill(match):
        if match.group(0) == "$$":
            return "$"
        inside = match.group(1) if match.group(1) is not None else match.group(2)
        if match.group(2) is not None and inside not in S.namespace:
            return match.group(0)
        try:
            return str(_eval(inside, S.namespace))
        except Exception:
            return match.group(0)
    return _FIELD.sub(fill, text)


def _shell():
    return "/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh"


def _run(command, **more):
    import subprocess
    flush()
    return subprocess.run(command, shell=True, executable=_shell(), stdin=subprocess.DEVNULL, **more)


def _system(text):
    command = _filled(text)
    before = _distributions() if _installs(command) else None
    done = _run(command)
    if before is not None:
        _evict(before)
    S.namespace["_exit_code"] = done.returncode
    if done.returncode:
        print("[exit code %d]" % done.returncode)
    if re.match(r"\s*cd(\s|$)", command):
        S.notes.append("`!cd` changes the folder of its own shell only; `%cd` changes the interpreter's")


def _lines(text):
    import subprocess
    command = _filled(text)
    before = _distributions() if _installs(command) else None
    done = _run(command, stdout=subprocess.PIPE, text=True, errors="replace")
    if before is not None:
        _evict(before)
    S.namespace["_exit_code"] = done.returncode
    return done.stdout.splitlines()


def _bash(_, body):
    before = _distributions() if _installs(body) else None
    import subprocess
    flush()
    done = subprocess.run([_shell(), "-c", body], stdin=subprocess.DEVNULL)
    if before is not None:
        _evict(before)
    if done.returncode:
        raise RuntimeError("the script ended with exit code %d" % done.returncode)


# ------------------------------------------------------------------ packages

_PIP = re.compile(r"\b(pip3?|uv|conda|mamba)\b.*\b(install|uninstall|remove|sync|upgrade|add)\b", re.S)


def _installs(command):
    return _PIP.search(command) is not None


def _distributions():
    import importlib.metadata as metadata
    found = {}
    for dist in metadata.distributions():
        try:
            name = dist.metadata["Name"]
            path = getattr(dist, "_path", None)
            stamp = os.stat(path).st_mtime_ns if path is not None else 0
            found.setdefault(name, (dist.version, stamp, _names(dist)))
        except Exception:
            continue
    return found


def _names(dist):
    tops = set((dist.read_text("top_level.txt") or "").split())
    if not tops:
        for file in dist.files or ():
            first = str(file).replace("\\", "/").split("/")
            if len(first) > 1 and not first[0].endswith((".dist-info", ".data")) and first[0] != "..":
                tops.add(first[0])
            elif len(first) == 1 and first[0].endswith(".py"):
                tops.add(first[0][:-3])
    return tops


def _evict(before):
    """Has the next import see what was just installed or removed."""
    import importlib
    importlib.invalidate_caches()
    after = _distributions()
    evicted, kept = [], []
    for name in sorted(set(before) | set(after), key=str):
        old, new = before.get(name), after.get(name)
        if old is not None and new is not None and old[:2] == new[:2]:
            continue
        told = "%s %s" % (name, " -> ".join(d[0] for d in (old, new) if d)) + ("" if new else " removed")
        for top in sorted((old[2] if old else set()) | (new[2] if new else set())):
            loaded = [m for m in list(sys.modules) if m == top or m.startswith(top + ".")]
            if not loaded:
                continue
            files = [getattr(sys.modules[m], "__file__", None) or "" for m in loaded]
            if any(file.endswith((".so", ".pyd")) for file in files):
                kept.append(told)
                continue
            for module in loaded:
                del sys.modules[module]
            evicted.append(told)
    if evicted:
        S.notes.append("imported anew from now on: " + ", ".join(dict.fromkeys(evicted)))
    if kept:
        S.notes.append("native code is loaded already, takes effect after reset: "
                       + ", ".join(dict.fromkeys(kept)))


def _pip(rest):
    import subprocess
    import shlex
    import importlib.util
    words = shlex.split(_filled(rest))
    if importlib.util.find_spec("pip") is not None:
        command = [sys.executable, "-m", "pip"] + words
    else:
        import shutil
        uv = shutil.which("uv")
        if uv is None:
            raise RuntimeError("%s has neither pip nor is uv there" % sys.executable)
        command = [uv, "pip"] + words[:1] + ["--python", sys.executable] + words[1:]
    before = _distributions()
    flush()
    done = subprocess.run(command, stdin=subprocess.DEVNULL)
    _evict(before)
    if done.returncode:
        raise RuntimeError("pip ended with exit code %d" % done.returncode)


def _other(name):
    def act(rest):
        before = _distributions()
        _system("%s %s" % (name, rest))
        _evict(before)
    return act


# --------------------------------------------------------------------- lines

def _cd(rest):
    if len(rest) > 1 and rest[0] == rest[-1] and rest[0] in "'\"":
        rest = rest[1:-1]
    os.chdir(os.path.expanduser(_filled(rest) or "~"))
    print(os.getcwd())


def _env(rest):
    if not rest:
        return dict(os.environ)
    name, sign, value = rest.partition("=") if "=" in rest else rest.partition(" ")
    if not sign:
        return os.environ.get(name)
    os.environ[name.strip()] = _filled(value.strip())


def _source(code):
    """Runs what stands behind %time or in a %%cell, as a cell is."""
    name = "<cell %d>" % S.cell
    source, tree = parsed(code, name)
    last = None
    body = tree.body
    if body and type(body[-1]).__name__ == "Expr":
        last = body.pop()
    if body:
        run(_compile(tree, name, "exec", TOP_LEVEL_AWAIT))
    if last is not None:
        import _ast
        return run(_compile(_ast.Expression(body=last.value), name, "eval", TOP_LEVEL_AWAIT))


def _span(seconds):
    for unit, size in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return "%.3g %s" % (seconds / size, unit)
    return "%.3g ns" % (seconds / 1e-9)


def _time(code, body=None):
    wall, cpu = time.perf_counter(), time.process_time()
    value = _source(body if body is not None else code)
    print("CPU time: %s, wall time: %s" % (
        _span(time.process_time() - cpu), _span(time.perf_counter() - wall)))
    return value


def _timeit(rest, body=None):
    import timeit
    number, repeat, code = 0, 7, rest
    while True:
        option = re.match(r"-([nr])\s*(\d+)\s*(.*)$", code, re.S)
        if not option:
            break
        if option.group(1) == "n":
            number = int(option.group(2))
        else:
            repeat = int(option.group(2))
        code = option.group(3)
    setup = "pass"
    if body is not None:
        setup, code = code or "pass", body
    timer = timeit.Timer(textwrap.dedent(code), setup, globals=S.namespace)
    if not number:
        number = timer.autorange()[0]
    runs = [took / number for took in timer.repeat(max(repeat, 1), number)]
    mean = sum(runs) / len(runs)
    spread = (sum((run_ - mean) ** 2 for run_ in runs) / len(runs)) ** 0.5
    print("%s +- %s per loop (mean +- std. dev. of %d runs, %d loops each)" % (
        _span(mean), _span(spread), len(runs), number))


def _run_file(rest):
    import runpy
    import shlex
    words = shlex.split(_filled(rest))
    old, sys.argv = sys.argv, words
    try:
        made = runpy.run_path(words[0], init_globals=None, run_name="__main__")
    finally:
        sys.argv = old
        sys.modules["__main__"].__dict__.update({})
    S.namespace.update((k, v) for k, v in made.items() if not k.startswith("__"))


def _who(_):
    print("  ".join(name for name in S.namespace if name[:1] != "_") or "no variables")


def _whos(_):
    for name, value in list(S.namespace.items()):
        if name[:1] != "_":
            print("%-20s %s" % (name, kind_of(value)))


def _reset(_):
    for name in list(S.namespace):
        if not name.startswith("__"):
            del S.namespace[name]


def _autoreload(rest):
    S.autoreload = (rest.strip() or "1") != "0"


def _ignore(_):
    return None


def _write(rest, body):
    append = rest.startswith("-a ")
    path = os.path.expanduser(_filled(rest[3:].strip() if append else rest))
    with _open(path, "a" if append else "w", encoding="utf-8") as file:
        file.write(body)
    print("%s %s" % ("appended to" if append else "wrote", path))


class _Captured:
    def __init__(self, text):
        self.stdout, self.stderr = text, ""

    def show(self):
        print(self.stdout, end="")

    def __str__(self):
        return self.stdout


def _capture(rest, body):
    import tempfile
    flush()
    with tempfile.TemporaryFile() as file:
        kept = [os.dup(1), os.dup(2)]
        try:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
            _source(body)
        finally:
            flush()
            os.dup2(kept[0], 1)
            os.dup2(kept[1], 2)
            for fd in kept:
                os.close(fd)
        file.seek(0)
        text = file.read().decode("utf-8", "replace")
    names = [word for word in rest.split() if not word.startswith("-")]
    if names:
        S.namespace[names[0]] = _Captured(text)


def _script(rest, body):
    import subprocess
    import shlex
    flush()
    done = subprocess.run(shlex.split(_filled(rest)), input=body.encode())
    if done.returncode:
        raise RuntimeError("%s ended with exit code %d" % (rest, done.returncode))


def _shown_as(kind):
    def act(_, body):
        send_display({kind: body, "text/plain": body})
    return act


def _help(name):
    try:
        value = _eval(name, S.namespace)
    except Exception:
        print("there is no %s" % name)
        return
    import inspect
    print("%s: %s" % (name, type(value).__name__))
    try:
        print("%s%s" % (name, inspect.signature(value)))
    except (TypeError, ValueError):
        pass
    doc = inspect.getdoc(value)
    if doc:
        print(doc[:8000])


LINES = {
    "pip": _pip, "uv": _other("uv"), "conda": _other("conda"), "mamba": _other("mamba"), "cd": _cd,
    "env": _env, "set_env": _env, "time": _time, "timeit": _timeit, "matplotlib": _ignore,
    "load_ext": _ignore, "config": _ignore, "autoreload": _autoreload, "run": _run_file, "who": _who,
    "whos": _whos, "pwd": lambda _: os.getcwd(), "ls": lambda rest: _system("ls " + rest),
    "cat": lambda rest: _system("cat " + rest), "reset": _reset, "pylab": _ignore,
    "mkdir": lambda rest: _system("mkdir " + rest), "pinfo": _help,
}
CELLS = {
    "bash": _bash, "sh": _bash, "script": _script, "time": _time, "timeit": _timeit,
    "writefile": _write, "capture": _capture, "html": _shown_as("text/html"),
    "markdown": _shown_as("text/markdown"), "javascript": _shown_as("text/javascript"),
}
