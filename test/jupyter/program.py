"""Runs code in kernels with an address and a token, as programs do that were written for Jupyter Server."""

import os
import threading

from jupyter_kernel_client import JupyterKernelClient

WAIT = 60


def client(**more):
    return JupyterKernelClient(server_url=os.environ["SERVER"], token=os.environ["TOKEN"], **more)


def run(kernel, code):
    return kernel.execute(code, timeout=WAIT)


with client() as kernel:
    assert kernel.kernel_info["language_info"]["name"] == "python", kernel.kernel_info
    reply = run(kernel, "x = 41\nprint('hello')\nx + 1")
    assert reply["status"] == "ok" and reply["execution_count"] == 1, reply
    assert reply["outputs"][0] == {"output_type": "stream", "name": "stdout", "text": "hello\n"}, reply
    assert reply["outputs"][1]["data"] == {"text/plain": "42"}, reply
    picture = "class P:\n  def _repr_png_(self): return b'png'\ndisplay(P())"
    assert run(kernel, picture)["outputs"][0]["data"]["image/png"] == "cG5n"
    failed = run(kernel, "1 / 0")
    assert failed["status"] == "error", failed
    assert failed["outputs"][0]["ename"] == "ZeroDivisionError", failed

    begun = threading.Event()
    watcher = lambda message: begun.set() if message["header"]["msg_type"] == "stream" else None
    stopped = []
    endless = "print('begun', flush=True)\nwhile True: pass"
    thread = threading.Thread(
        target=lambda: stopped.append(kernel.execute_interactive(endless, timeout=WAIT, output_hook=watcher))
    )
    thread.start()
    assert begun.wait(WAIT)
    kernel.interrupt()
    thread.join(WAIT)
    assert stopped[0]["content"]["ename"] == "KeyboardInterrupt", stopped

    assert run(kernel, "x")["outputs"][0]["data"] == {"text/plain": "41"}
    with client(kernel_id=kernel.id) as other:
        assert run(other, "x")["outputs"][0]["data"] == {"text/plain": "41"}
    kernel.restart()
    assert run(kernel, "x")["outputs"][0]["ename"] == "NameError"
    ids = [each["id"] for each in kernel.list_kernels()]
    assert kernel.id in ids, ids
assert client().list_kernels() == []

kernel = client()
kernel.start(name="javascript")
try:
    assert run(kernel, "const y = [1, 2]; y.map((n) => n * 2)")["outputs"][0]["data"] == {"text/plain": "[ 2, 4 ]"}
finally:
    kernel.stop(shutdown_kernel=True)
