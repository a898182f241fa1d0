# What is shown of an exception: the frames of cells and of what they called, none of ours.

import traceback as _tb

MOST_FRAMES = 30


def _own(filename):
    return filename.startswith("<hostler")


def shown(error):
    S.line = None
    if isinstance(error, SyntaxError) and error.filename and error.filename.startswith("<cell"):
        error.__traceback__ = None
        return clean("".join(_tb.format_exception_only(type(error), error))).rstrip()
    seen = set()
    pieces = []
    _chain(error, seen, pieces, 0)
    return clean("".join(pieces)).rstrip()


def _chain(error, seen, pieces, depth):
    seen.add(id(error))
    cause, context = error.__cause__, error.__context__
    if depth < 5:
        if cause is not None and id(cause) not in seen:
            _chain(cause, seen, pieces, depth + 1)
            pieces.append("\nThe above exception was the direct cause of the following exception:\n\n")
        elif context is not None and not error.__suppress_context__ and id(context) not in seen:
            _chain(context, seen, pieces, depth + 1)
            pieces.append("\nDuring handling of the above exception, another exception occurred:\n\n")
    frames = [f for f in _tb.extract_tb(error.__traceback__) if not _own(f.filename)]
    current = "<cell %d>" % S.cell
    if depth == 0:
        for entry in frames:
            if entry.filename == current:
                S.line = entry.lineno
                break
    if frames:
        pieces.append("Traceback (most recent call last):\n")
        if len(frames) > MOST_FRAMES:
            half = MOST_FRAMES // 2
            pieces.extend(_tb.format_list(frames[:half]))
            pieces.append("  [... %d frames left out ...]\n" % (len(frames) - 2 * half))
            frames = frames[-half:]
        pieces.extend(_tb.format_list(frames))
    try:
        pieces.extend(_tb.format_exception_only(type(error), error))
    except BaseException:
        pieces.append("%s: <whose text failed>\n" % type(error).__name__)
