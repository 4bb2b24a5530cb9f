"""MegaBlocks' own Python and Triton code: on a GPU, or on the CPU where an overlay holds it:

    pip install --no-deps --no-build-isolation --target OVERLAY -r envs/megablocks.txt
    PYTHONPATH=OVERLAY TRITON_INTERPRET=1 pytest tests/megablocks

With MOELAWS_MEGABLOCKS=required a test that would be skipped for lack of it fails.
"""

import os

import pytest
from expert_cases import DEVICE, model_of

from moelaws.model.megablocks.backend import megablocks_obstacle


@pytest.fixture
def megablocks_fp32():
    """For tests that run the package in fp32."""
    require("fp32")


@pytest.fixture
def megablocks_bf16():
    """The same in bf16, all that its compiled products know."""
    require("bf16")


def require(precision):
    obstacle = megablocks_obstacle(model_of(), DEVICE, precision)
    if obstacle:
        stop = pytest.fail if os.environ.get("MOELAWS_MEGABLOCKS") == "required" else pytest.skip
        stop(f"{obstacle}; how to run these on the CPU: tests/megablocks/conftest.py")
