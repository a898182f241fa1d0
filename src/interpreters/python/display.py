# The forms of values: tables bounded, figures as images, text before HTML.

import base64
import io

ROWS, COLUMNS = 20, 20
LARGEST_SIDE = 1568
LARGEST_IMAGE = 8 << 20
METHODS = (("_repr_png_", "image/png"), ("_repr_jpeg_", "image/jpeg"), ("_repr_svg_", "image/svg+xml"),
           ("_repr_markdown_", "text/markdown"), ("_repr_html_", "text/html"),
           ("_repr_latex_", "text/latex"), ("_repr_json_", "application/json"))


def bundle(value):
    kind = type(value)
    root = (kind.__module__ or "").partition(".")[0]
    try:
        if root == "matplotlib":
            return _matplotlib(value)
        if root == "pandas" and kind.__name__ in ("DataFrame", "Series"):
            return {"text/plain": pandas_table(value)}
        if root == "polars" and kind.__name__ in ("DataFrame", "Series"):
            return {"text/plain": polars_table(value)}
        if root == "PIL" and hasattr(value, "save") and hasattr(value, "size"):
            return _pil(value)
    except KeyboardInterrupt:
        raise
    except Exception as error:
        S.notes.append("shown by its repr, as its own form failed: %s: %s" % (type(error).__name__, error))
        return {"text/plain": bounded(value)}
    return _by_methods(value)


def _by_methods(value):
    forms = {}
    if not isinstance(value, type):
        method = getattr(value, "_repr_mimebundle_", None)
        if callable(method):
            try:
                made = method()
                made = made[0] if isinstance(made, tuple) else made
                forms.update((str(k), _encoded(v)) for k, v in (made or {}).items())
            except KeyboardInterrupt:
                raise
            except Exception:
                forms = {}
        if not forms:
            for name, mime in METHODS:
                method = getattr(value, name, None)
                if not callable(method):
                    continue
                try:
                    made = method()
                except KeyboardInterrupt:
                    raise
                except Exception:
                    continue
                if isinstance(made, tuple):
                    made = made[0]
                if made is not None:
                    forms[mime] = _encoded(made)
    for mime in [m for m in forms if m.startswith("image/") and len(str(forms[m])) > LARGEST_IMAGE * 4 // 3]:
        S.notes.append("an image of %d bytes is left out: over the limit of %d" % (
            len(forms.pop(mime)) * 3 // 4, LARGEST_IMAGE))
    if "text/plain" not in forms:
        forms["text/plain"] = bounded(value)
    return forms


def _encoded(value):
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, str):
        return clean(value)
    return plain(value)


def image(png):
    return base64.b64encode(png).decode("ascii")


def _figure(figure):
    width, height = figure.get_size_inches() * figure.dpi
    scale = min(1.0, LARGEST_SIDE / max(width, height, 1))
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=figure.dpi * scale)
    shape = "%dx%d" % (width * scale, height * scale)
    return {"image/png": image(out.getvalue()), "text/plain": "<Figure %s>" % shape}


def _matplotlib(value):
    from matplotlib.figure import Figure
    if isinstance(value, Figure):
        made = _figure(value)
        plt = sys.modules.get("matplotlib.pyplot")
        if plt is not None:
            plt.close(value)
        return made
    return {"text/plain": bounded(value)}


def is_artists(value):
    values = value if isinstance(value, (list, tuple)) else [value]
    return bool(values) and all((type(v).__module__ or "").startswith("matplotlib") for v in values)


def figures(plt):
    """Shows and closes every figure that is open, once."""
    _own_show(plt)
    for number in plt.get_fignums():
        figure = plt.figure(number)
        if figure.get_axes() or figure.texts or figure.images:
            send_display(_figure(figure))
        plt.close(figure)


def _own_show(plt):
    if not getattr(plt.show, "_hostler", False):
        def show_now(*_, **__):
            figures(plt)
        show_now._hostler = True
        plt.show = show_now


def _pil(value):
    out = io.BytesIO()
    shown_ = value
    if max(value.size) > LARGEST_SIDE:
        shown_ = value.copy()
        shown_.thumbnail((LARGEST_SIDE, LARGEST_SIDE))
    if shown_.mode not in ("1", "L", "LA", "I", "P", "RGB", "RGBA"):
        shown_ = shown_.convert("RGB")
    shown_.save(out, format="PNG")
    return {"image/png": image(out.getvalue()), "text/plain": "<Image %dx%d %s>" % (
        value.size[0], value.size[1], value.mode)}


def pandas_table(value):
    import pandas
    frame_ = value.to_frame() if isinstance(value, pandas.Series) else value
    rows, columns = frame_.shape
    with pandas.option_context("display.max_rows", ROWS, "display.min_rows", ROWS,
                               "display.max_columns", COLUMNS, "display.width", 200,
                               "display.max_colwidth", 60, "display.show_dimensions", False):
        text = frame_.to_string(max_rows=ROWS, max_cols=COLUMNS) if rows else repr(frame_)
    types = ["%s %s" % (name, kind) for name, kind in list(frame_.dtypes.items())[:COLUMNS]]
    more = "" if columns <= COLUMNS else ", ... %d more" % (columns - COLUMNS)
    return clean("%s\n[%d rows x %d columns: %s%s]" % (text, rows, columns, ", ".join(types), more))


def polars_table(value):
    import polars
    frame_ = value.to_frame() if isinstance(value, polars.Series) else value
    rows, columns = frame_.shape
    with polars.Config(tbl_rows=ROWS, tbl_cols=COLUMNS, tbl_width_chars=200, fmt_str_lengths=60):
        text = str(frame_)
    return clean("%s\n[%d rows x %d columns]" % (text, rows, columns))


# --------------------------------------------------- IPython, where it is not

class _Shown:
    def __init__(self, data=None, **more):
        self.data = data

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {self.mime: _encoded(self.data), "text/plain": bounded(self.data, 2000)}


def _kind(name, mime):
    return type(name, (_Shown,), {"mime": mime})


class _Image(_Shown):
    def __init__(self, data=None, filename=None, **more):
        if filename is not None or (isinstance(data, str) and os.path.exists(data)):
            with _open(filename or data, "rb") as file:
                data = file.read()
        self.data = data
        self.mime = "image/jpeg" if bytes(data or b"")[:2] == b"\xff\xd8" else "image/png"

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {self.mime: _encoded(self.data), "text/plain": "<Image, %d bytes>" % len(self.data)}


def ipython_spec(name):
    if name not in ("IPython", "IPython.display", "IPython.core", "IPython.core.display"):
        return None
    import importlib.machinery
    spec = importlib.machinery.ModuleSpec(name, _Loader(), is_package=name in ("IPython", "IPython.core"))
    return spec


class _Loader:
    def create_module(self, spec):
        return None

    def exec_module(self, module):
        names = {
            "display": display, "Image": _Image, "HTML": _kind("HTML", "text/html"),
            "Markdown": _kind("Markdown", "text/markdown"), "JSON": _kind("JSON", "application/json"),
            "SVG": _kind("SVG", "image/svg+xml"), "Latex": _kind("Latex", "text/latex"),
            "Pretty": _kind("Pretty", "text/plain"), "clear_output": lambda *_, **__: None,
            "get_ipython": lambda: None,
        }
        for name, value in names.items():
            module.__dict__.setdefault(name, value)
