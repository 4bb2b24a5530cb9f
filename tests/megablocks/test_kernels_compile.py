"""The kernels that the layer launches compile to machine code for GPUs that are not here."""

import os
import subprocess
import sys

import pytest
from expert_cases import BF16

# As forward and backward of the layer launch them: gather and scatter of rows in the computing
# type, scaled by gates in fp32 or not, and the gates' gradient.
COMPILE = """
import sys
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from moelaws.model.megablocks.backend import load
load()
from megablocks.backend import kernels

def compile(kernel, x, constants, **others):
    tensors = dict.fromkeys(("a", "b", "x", "grad", "wgrad"), x) | others
    tensors |= dict.fromkeys(("indices", "bin_ids", "bins", "padded_bins"), "*i32")
    for config in kernel.configs:
        given = constants | config.kwargs
        signature = {n: "constexpr" if n in given else tensors[n] for n in kernel.arg_names}
        source = ASTSource(fn=kernel.fn, signature=signature, constexprs=given)
        target = GPUTarget("cuda", int(sys.argv[1]), 32)
        code = triton.compile(source, target=target, options={"num_warps": config.num_warps})
        assert code.asm["cubin"][:4] == bytes((0x7F, 0x45, 0x4C, 0x46)), "no ELF file"
        # Lanes beyond a row's end are summed too: a load must leave zeros there.
        loads = code.asm["ptx"].count("ld.global")
        assert loads and code.asm["ptx"].count(", 0x0;") >= loads

sizes = {"NUM_COLUMNS": 96, "TOP_K": 2}
for x in ("*bf16", "*fp32"):
    for to_b in (True, False):
        copy = sizes | {"A_TO_B": to_b}
        compile(kernels._padded_copy, x, copy | {"SCALE": True}, weights="*fp32")
        compile(kernels._padded_copy, x, copy | {"SCALE": False, "weights": None})
    compile(kernels._padded_copy_wgrad, x, sizes)
print("compiled")
"""


@BF16
@pytest.mark.parametrize("capability", ["80", "90"])
def test_kernels_compile_for_ampere_and_hopper(capability, tmp_path):
    """In a process of its own: here Triton interprets."""
    done = subprocess.run(
        [sys.executable, "-c", COMPILE, capability],
        env=os.environ | {"TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "compiled\n"
