"""Runs the Python code of one context of the code interpreter. Standard library only.

The server talks to this program on descriptor 3, one JSON object per line in both directions: an execution comes in,
`begun` says that an interrupt now reaches its code, results and errors go out, and `done` ends them. Standard output
and standard error are read by the server itself, so output of child processes and of C code is seen too. The worker
writes the execution's mark to both: before each result, which the server then passes on after the output before it,
and after the execution.
"""

import ast
import asyncio
import base64
import builtins
import importlib.abc
import importlib.machinery
import inspect
import io
import json
import linecache
import os
import signal
import sys
import traceback
import types

TEXT_CHARS_MAX = 1_000_000
TRACEBACK_CHARS_MAX = 64_000
CELL = "<cell "
EXIT_WITHOUT_SERVER = 70
FENCE = b"\1"
END = b"\0"

METHODS = {
    "text/html": "_repr_html_",
    "text/markdown": "_repr_markdown_",
    "image/svg+xml": "_repr_svg_",
    "image/png": "_repr_png_",
    "image/jpeg": "_repr_jpeg_",
    "application/pdf": "_repr_pdf_",
    "text/latex": "_repr_latex_",
    "application/json": "_repr_json_",
    "application/javascript": "_repr_javascript_",
}


class Channel:
    """The connection to the server, on a descriptor that child processes do not inherit."""

    def __init__(self):
        self.fd = os.dup(3)
        os.close(3)
        self.reader = os.fdopen(os.dup(self.fd), "rb")

    def receive(self):
        line = self.reader.readline()
        if not line:
            os._exit(0)
        return json.loads(line)

    def send(self, message):
        try:
            write(self.fd, json.dumps(message, default=str).encode() + b"\n")
        except OSError:
            os._exit(EXIT_WITHOUT_SERVER)

    def send_after_output(self, message):
        """Sends a result or an error, which comes after the output before it. Between executions it is for nobody."""
        if not cells.mark:
            return
        message["unfenced"] = [output.fd for output in outputs if not output.fence(cells.mark)]
        self.send(message)


def write(fd, content):
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(fd, rest) :]


class Output:
    """One of the two output descriptors. Code may close or replace the descriptor; every execution gets it back."""

    def __init__(self, fd, name):
        self.fd = fd
        self.name = name
        self.kept = os.dup(fd)
        self.inode = os.fstat(fd).st_ino
        self.stream = None

    def restore(self):
        if not self.is_ours():
            os.dup2(self.kept, self.fd)
        if self.stream is None or self.stream.closed:
            raw = open(self.fd, "wb", closefd=False)
            self.stream = io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", line_buffering=True)
            setattr(sys, f"__{self.name}__", self.stream)
        setattr(sys, self.name, self.stream)

    def fence(self, mark):
        """Marks the place of a result in the output. False when code has closed the descriptor."""
        self.flush()
        try:
            write(self.kept, mark + FENCE)
            return True
        except OSError:
            return False

    def end(self, mark):
        self.flush()
        self.restore()
        write(self.fd, mark + END)

    def flush(self):
        for stream in (getattr(sys, self.name, None), self.stream):
            try:
                stream.flush()
            except Exception:
                pass

    def is_ours(self):
        try:
            return os.fstat(self.fd).st_ino == self.inode
        except OSError:
            return False


def bundle_of(value):
    """The representations of a value by media type, from the methods that notebooks have agreed on."""
    data = {"text/plain": text_of(value)}
    if isinstance(value, type):
        return data
    bundle = called(value, "_repr_mimebundle_", include=None, exclude=None)
    if isinstance(bundle, tuple):
        bundle = bundle[0]
    if isinstance(bundle, dict):
        data.update(bundle)
    for media_type, method in METHODS.items():
        made = None if media_type in data else called(value, method)
        if isinstance(made, tuple):
            made = made[0]
        if made is not None:
            data[media_type] = made
    if is_figure(value) and "image/png" not in data:
        data["image/png"] = png_of(value)
    return {media_type: encoded(content) for media_type, content in data.items() if content is not None}


def text_of(value):
    try:
        text = repr(value)
    except Exception as error:
        text = f"<{type(value).__name__}: its repr raised {type(error).__name__}>"
    # Clients of the run-code call expect the text of a str without its quotes.
    if not cells.quotes and isinstance(value, str) and len(text) >= 2 and text[0] in "'\"" and text[-1] == text[0]:
        text = text[1:-1]
    if len(text) > TEXT_CHARS_MAX:
        text = f"{text[:TEXT_CHARS_MAX]}… ({len(text)} characters)"
    return text


def called(value, name, **arguments):
    # An object that answers to every name has no representation.
    if not callable(getattr(type(value), name, None)):
        return None
    try:
        return getattr(value, name)(**arguments)
    except Exception:
        return None


def encoded(content):
    return base64.b64encode(content).decode() if isinstance(content, (bytes, bytearray)) else content


def is_figure(value):
    module = sys.modules.get("matplotlib.figure")
    return module is not None and isinstance(value, module.Figure)


def png_of(figure):
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", bbox_inches="tight")
    return buffer.getvalue()


def display(*values, raw=False, **options):
    """Sends values to the caller as results. With raw=True each value is a dict by media type."""
    for value in values:
        data = {key: encoded(content) for key, content in value.items()} if raw else bundle_of(value)
        channel.send_after_output({"type": "result", "main": False, "data": data})


BACKEND = "berth_figures"


def figures_backend():
    """A backend of matplotlib: `show` sends the open figures as results."""
    from matplotlib.backends import backend_agg

    module = types.ModuleType(BACKEND)
    module.FigureCanvas = backend_agg.FigureCanvasAgg
    module.FigureManager = backend_agg.FigureManagerBase
    module.show = lambda *arguments, **options: show_figures()
    return module


def show_figures():
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None or BACKEND not in pyplot.get_backend():
        return
    for number in pyplot.get_fignums():
        display(pyplot.figure(number))
    pyplot.close("all")


def after_matplotlib(module):
    module.use(f"module://{BACKEND}")


def after_display_functions(module):
    module.display = display


class AfterImport(importlib.abc.MetaPathFinder):
    """Calls a function once a module has been imported."""

    HOOKS = {"matplotlib": after_matplotlib, "IPython.core.display_functions": after_display_functions}

    def find_spec(self, name, path=None, target=None):
        if name == BACKEND:
            return importlib.machinery.ModuleSpec(name, BackendLoader())
        hook = self.HOOKS.get(name)
        if hook is None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            hook(module)

        spec.loader.exec_module = exec_module
        return spec


class BackendLoader(importlib.abc.Loader):
    def create_module(self, spec):
        return figures_backend()

    def exec_module(self, module):
        pass


class Cells:
    """The namespace of the context, and the code that ran in it."""

    def __init__(self):
        self.module = types.ModuleType("__main__")
        self.module.__builtins__ = builtins
        self.module.display = display
        sys.modules["__main__"] = self.module
        self.loop = None
        self.is_running = False
        self.quotes = False
        self.mark = b""

    def run(self, number, source):
        name = f"{CELL}{number}>"
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        tree = ast.parse(source, name)
        last = tree.body.pop() if ends_with_value(tree, source) else None
        self.evaluate(compile(tree, name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT))
        if last is not None:
            code = compile(ast.Expression(last.value), name, "eval", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            value = self.evaluate(code)
            if value is not None:
                self.module._ = value
                channel.send_after_output({"type": "result", "main": True, "data": bundle_of(value)})
        show_figures()

    def evaluate(self, code):
        value = eval(code, self.module.__dict__)
        if not code.co_flags & inspect.CO_COROUTINE:
            return value
        if self.loop is None or self.loop.is_closed():
            self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        return self.loop.run_until_complete(value)


def ends_with_value(tree, source):
    return bool(tree.body) and isinstance(tree.body[-1], ast.Expr) and not source.rstrip().endswith(";")


def describe(error):
    """The error as clients show it: without the frames of this program."""
    frame = error.__traceback__
    while frame is not None and not frame.tb_frame.f_code.co_filename.startswith(CELL):
        frame = frame.tb_next
    try:
        text = "".join(traceback.format_exception(type(error), error, frame))
        value = str(error)
    except Exception as other:
        text = value = f"{type(error).__name__}: its text raised {type(other).__name__}"
    if len(text) > TRACEBACK_CHARS_MAX:
        text = f"{text[:TRACEBACK_CHARS_MAX]}\n… ({len(text)} characters)"
    return {"type": "error", "name": type(error).__name__, "value": value[:TRACEBACK_CHARS_MAX], "traceback": text}


def on_interrupt(number, frame):
    if cells.is_running:
        cells.is_running = False
        raise KeyboardInterrupt


def execute(request):
    before = dict(os.environ)
    os.environ.update(request["env"])
    for output in outputs:
        output.restore()
    signal.signal(signal.SIGINT, on_interrupt)
    failure = None
    try:
        try:
            cells.is_running = True
            cells.quotes = request["quotes"]
            cells.mark = request["mark"].encode()
            channel.send({"type": "begun"})
            cells.run(request["number"], request["code"])
        finally:
            cells.is_running = False
    except BaseException as error:
        failure = error
    # A child that code forked has come to the end of that code; only the worker goes on.
    if os.getpid() != pid:
        os._exit(0)
    if failure is not None:
        channel.send_after_output(describe(failure))
    for name in request["env"]:
        if name in before:
            os.environ[name] = before[name]
        else:
            os.environ.pop(name, None)
    for output in outputs:
        output.end(cells.mark)
    cells.mark = b""
    channel.send({"type": "done", "number": request["number"]})


pid = os.getpid()
channel = Channel()
outputs = [Output(1, "stdout"), Output(2, "stderr")]
cells = Cells()
signal.signal(signal.SIGINT, on_interrupt)
sys.meta_path.insert(0, AfterImport())
sys.argv = [""]
while True:
    execute(channel.receive())
