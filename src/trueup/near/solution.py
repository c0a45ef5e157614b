"""An estimator of one statistic and what is proven of it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trueup.near.certificate import Certificate
    from trueup.near.curve import Curve
    from trueup.near.question import Question
    from trueup.near.smoothing import Smoothing


@dataclasses.dataclass(frozen=True)
class Solution:
    """An estimator of one statistic and what is proven of it.

    ``spread`` is the unbiased estimator of its variance, None where that has to be looked for.
    """

    question: Question
    smoothing: Smoothing
    curve: Curve
    certificate: Certificate
    spread: Curve | None = None
