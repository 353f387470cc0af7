"""How much a model can read and write at once: what is known of models by name, what a refusal teaches, and what is left to write.

`tokens` counts; this compares counts with limits, and never guesses a limit. What is done where a request is too long is in
`compaction`.
"""

from nb_agent.windows.budgets import Budget, asked_for, budgeted
from nb_agent.windows.learned import limit_in, remember, window_in, window_of
from nb_agent.windows.table import Known, known, use

__all__ = ["Budget", "Known", "asked_for", "budgeted", "known", "limit_in", "remember", "use", "window_in", "window_of"]
