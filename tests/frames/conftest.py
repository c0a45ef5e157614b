"""One test, every dataframe library."""

import pytest

from frames.backends import BACKENDS


@pytest.fixture(params=BACKENDS, ids=repr)
def constructor(request):
    return request.param


@pytest.fixture(params=[b for b in BACKENDS if b.eager], ids=repr)
def eager_constructor(request):
    return request.param


@pytest.fixture(params=[b for b in BACKENDS if not b.eager], ids=repr)
def lazy_constructor(request):
    return request.param
