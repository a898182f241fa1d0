# The project's own modules that changed on disk since they were imported: a coding agent
# edits them with other tools, and the interpreter would go on with the old ones.

import importlib

HERE = os.path.realpath(os.getcwd()) + os.sep


def watch():
    """Takes up what was imported since from the project."""
    for name, module in list(sys.modules.items()):
        if name in STAMPS:
            continue
        file = getattr(module, "__file__", None)
        if not file or not file.endswith(".py"):
            STAMPS[name] = None
            continue
        path = os.path.realpath(file)
        if not path.startswith(HERE) or "site-packages" in path:
            STAMPS[name] = None
            continue
        STAMPS[name] = _stamp(path)
        PROJECT.append((name, path))


def _stamp(path):
    try:
        status = os.stat(path)
        return (status.st_mtime_ns, status.st_size)
    except OSError:
        return None


def refresh():
    changed = []
    for name, path in PROJECT:
        now = _stamp(path)
        if now is not None and name in sys.modules and STAMPS.get(name) != now:
            STAMPS[name] = now
            changed.append(name)
    for name in changed:
        try:
            importlib.invalidate_caches()
            importlib.reload(sys.modules[name])
            S.notes.append("%s changed on disk and was reloaded; objects made before keep the old code" % name)
        except BaseException as error:
            S.notes.append("%s changed on disk; reloading failed: %s: %s" % (name, type(error).__name__, error))
