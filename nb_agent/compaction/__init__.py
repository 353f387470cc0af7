"""Compaction: what is sent of a conversation that does not fit the model's window. The conversation itself stays whole.

`places` says where a history can be cut, `strategies` what can be done there, `fitting` when it has to be. To undo it is to switch
it off: the next run then sends all of it again.
"""

from __future__ import annotations

from nb_agent.compaction.fitting import Fitted, Fitting, Memory
from nb_agent.compaction.places import keep_last, units
from nb_agent.compaction.strategies import (
    DEFAULT,
    STRATEGIES,
    Room,
    Strategy,
    chosen,
    drop_turns,
    stub_newest,
    stub_results,
    summarise,
)

__all__ = ["DEFAULT", "STRATEGIES", "Fitted", "Fitting", "Memory", "Room", "Strategy", "chosen", "drop_turns", "keep_last"]
__all__ += ["stub_newest", "stub_results", "summarise", "units"]
