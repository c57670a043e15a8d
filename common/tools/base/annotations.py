"""Types that many annotations name."""

from collections.abc import Sequence
from typing import Any

JsonObject = dict[str, Any]  # a report, a launch, a problem, ..: what its writer says of its keys
Command = Sequence[object]  # a program and its arguments: each is passed on as str() writes it
