# tool(): a call goes out as a frame, its result comes back as a request. Whichever
# thread waits reads for all.

import base64
import threading
import time

_condition = threading.Condition()
_open_calls = {}
_answers = {}
_reader = [None]


class ToolError(Exception):
    """A tool failed. `details` holds the same facts for programs."""
    def __init__(self, text, details=None):
        super().__init__(text)
        self.details = details


class ToolDenied(ToolError):
    """A tool was refused: by the mode, by a guard, or by whoever was asked."""


class Image:
    """An image of a result; display() shows it."""
    def __init__(self, mime_type, data):
        self.mime_type = mime_type
        self.data = base64.b64decode(data)
        self._encoded = data

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {self.mime_type: self._encoded, "text/plain": repr(self)}

    def __repr__(self):
        return "<%s, %d bytes>" % (self.mime_type, len(self.data))


class ToolText(str):
    """The text of a result, with `.images` and `.details`."""
    def __new__(cls, text, images, details):
        made = super().__new__(cls, text)
        made.images = images
        made.details = details
        return made


import builtins as _builtins
_builtins.ToolError, _builtins.ToolDenied = ToolError, ToolDenied


def _send(name, arguments, more):
    if not isinstance(name, str):
        raise TypeError("tool(name, arguments): the name is a text, not %s" % type(name).__name__)
    if arguments is not None and not isinstance(arguments, dict):
        raise TypeError("tool(name, arguments): the arguments are a dict, not %s" % type(arguments).__name__)
    given = plain(dict(arguments or {}, **more))
    if _getpid() != S.pid:
        raise ToolError("tool() works in the interpreter itself, not in a process that it forked")
    if not S.active:
        raise ToolError("no cell is running: tool() works only while one does")
    size = len(json.dumps(given))
    if size > LONGEST_ARGUMENTS:
        raise ToolError("the arguments are %d bytes, over the limit of %d" % (size, LONGEST_ARGUMENTS))
    with _condition:
        S.call += 1
        number = S.call
        _open_calls[number] = S.cell
    flush()
    frame({"kind": "tool", "cell": S.cell, "id": number, "name": name, "arguments": given})
    return number


def _wait(number, cell):
    while True:
        with _condition:
            if number in _answers:
                _open_calls.pop(number, None)
                return _answers.pop(number)
            if S.cell != cell or not S.active:
                raise ToolError("the cell ended before the tool answered")
            if _reader[0] is not None:
                _condition.wait(0.5)
                continue
            _reader[0] = number
        try:
            _take()
        finally:
            with _condition:
                _reader[0] = None
                _condition.notify_all()


def _take():
    """Reads one request. Only replies come while a cell runs."""
    request = lines()
    if request.get("op") == "reply":
        with _condition:
            if request["id"] in _open_calls:
                _answers[request["id"]] = request
            _condition.notify_all()
    elif request.get("op") == "probe":
        frame({"kind": "alive", "n": request["n"]})


def _result(reply):
    ok = reply.get("ok")
    if ok is not None:
        images = [Image(i["mime_type"], i["data"]) for i in ok.get("images") or ()]
        return ToolText(ok.get("text") or "", images, ok.get("details"))
    error = reply["error"]
    made = ToolDenied if error["kind"] == "denied" else ToolError
    raise made(error["text"], error.get("details"))


def call(name, arguments, more):
    number = _send(name, arguments, more)
    return _result(_wait(number, S.cell))


def aio(name, arguments, more):
    import asyncio

    async def ask():
        number = _send(name, arguments, more)
        cell = S.cell
        loop = asyncio.get_running_loop()
        while True:
            with _condition:
                if number in _answers:
                    _open_calls.pop(number, None)
                    return _result(_answers.pop(number))
            if S.buffer.find(b"\n") >= 0:
                _take()
                continue
            ready = loop.create_future()
            _listen(loop, ready)
            try:
                await ready
            finally:
                _unlisten(loop, ready)
            if S.cell != cell:
                raise ToolError("the cell ended before the tool answered")
    return ask()


_waiting = []


def _listen(loop, ready):
    _waiting.append(ready)
    if len(_waiting) == 1:
        loop.add_reader(REQUESTS, _arrived, loop)


def _unlisten(loop, ready):
    if ready in _waiting:
        _waiting.remove(ready)
    if not _waiting:
        loop.remove_reader(REQUESTS)


def _arrived(loop):
    _take()
    for ready in list(_waiting):
        if not ready.done():
            ready.set_result(None)


def map_calls(name, calls):
    """Makes many calls at once; results in their order. The first failure is raised."""
    numbers = [_send(name, arguments, {}) for arguments in calls]
    replies = [_wait(number, S.cell) for number in numbers]
    return [_result(reply) for reply in replies]
